"""What mkdocs calls while it builds the site: pages from outside docs/, the navigation, and what is generated in pages."""

from typing import Any

from blocks import fill_page
from method_pages import list_missing_pages
from mkdocs.structure.files import File, Files
from navigation import make_navigation
from repository import ROOT, list_linked_files, name_in_site, rewrite_links


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add what pages link to in the repository, pages of methods that have none of their own, and the navigation."""
    for path, text in list_missing_pages({file.src_uri for file in files}).items():
        files.append(File.generated(config, path, content=text))
    pages = {f"docs/{file.src_uri}": fill_page(file.content_string, file.src_uri) for file in files.documentation_pages()}
    for path in list_linked_files(pages):
        files.append(File.generated(config, name_in_site(path), abs_src_path=str(ROOT / path)))
    config["nav"] = make_navigation([file.src_uri for file in files.documentation_pages()])
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in what is generated, and lead the links to places in the site."""
    source = page.file.src_uri
    inside = (ROOT / "docs" / source).is_file() or not (ROOT / source).is_file()
    return rewrite_links(fill_page(markdown, source), f"docs/{source}" if inside else source)
