"""The files that pluribus reads: how they are read and written (`reading.py`), and what each of them must hold (`…_files.py`).

A file may be damaged or hostile. So every file is read through `read_json` or `read_yaml` with its schema, and whatever is
wrong with it is a FileError of one sentence.
"""
