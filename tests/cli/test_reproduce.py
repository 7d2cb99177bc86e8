"""`pluribus reproduce` with several recipes: what cannot be run here is skipped, with the reason."""

from pluribus.papers.page import format_page


def test_what_cannot_be_run_is_skipped_visibly_beside_others(pluribus, work):
    answer = pluribus("reproduce mimo/table-2 mimo/table-3 --scale cpu --out out --work work")
    assert answer.code == 0
    assert "mimo/table-2 cpu: skipped: cifar100 is not complete" in answer.err
    assert "mimo/table-3 cpu: skipped: mimo/table-3 cpu is not run at this scale: ImageNet" in answer.err
    assert not (work / "out").exists()


def test_the_page_says_what_a_recipe_that_was_not_run_needs():
    page = format_page("mimo", {})
    assert "mimo/table-2: Methods on CIFAR-100 | not run; needs cifar100 |" in page
    assert "mimo/table-3: Methods on ImageNet | not run: ImageNet" in page
