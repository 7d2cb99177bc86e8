import pytest

from pluribus.core.errors import FileError
from pluribus.core.file_names import check_file_name, check_inside


@pytest.mark.parametrize("name", ["single-seed0", "deep-ensemble-of-mimo-members-2--seed12", "größe_1.5", "a=1,b+c@d"])
def test_names_of_our_own_are_plain(name):
    assert check_file_name(name, "grid.yaml") == name


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", ".hidden", "/etc", "a/b", "../a", "a\\b", "a b", "a\nb", "a\0b", "a\x1bb", "a:b", "~", "$HOME", "*"),
        *(201 * "a", 101 * "ä", "\ud800", None, 3, ["a"]),
    ],
)
def test_names_that_could_lead_elsewhere_are_refused_in_one_line(name):
    with pytest.raises(FileError, match=r"a name in grid.yaml must have at most 200 letters") as refused:
        check_file_name(name, "grid.yaml")
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 350


def test_a_link_out_of_a_folder_is_refused_and_one_inside_is_not(tmp_path):
    folder = tmp_path / "folder"
    (folder / "inside").mkdir(parents=True)
    (folder / "near").symlink_to(folder / "inside")
    (folder / "far").symlink_to(tmp_path)
    assert check_inside(folder / "near", folder) == folder / "near"
    assert check_inside(folder / "not there", folder) == folder / "not there"
    with pytest.raises(FileError, match="a link leads to"):
        check_inside(folder / "far", folder)
