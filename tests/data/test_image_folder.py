"""Image folders."""

import numpy as np
import pytest
from PIL import Image

from pluribus.core.errors import DataError
from pluribus.data import load


def picture(path, size=(4, 6), mode="RGB", value=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = size if mode == "L" else (*size, 3)
    pixels = np.full(shape, value, np.uint8) if value is not None else np.random.RandomState(0).randint(0, 256, shape, np.uint8)
    Image.fromarray(pixels, mode).save(path)
    return pixels


@pytest.fixture
def photos(tmp_path):
    for name, value in (("cat", 10), ("dog", 200)):
        for i in range(10):
            picture(tmp_path / name / f"{i}.png", value=value + i)
    return tmp_path


def test_pixels_come_back_as_they_were_written(tmp_path):
    written = [picture(tmp_path / name / "0.png") for name in ("a", "b")]
    data = load(str(tmp_path), test=0)
    assert data.shape == (3, 4, 6)
    assert np.array_equal(data.train.x[0].permute(1, 2, 0), written[0])


def test_a_folder_is_a_class_and_a_share_of_each_is_set_aside(photos):
    data = load(str(photos))
    assert (data.classes, len(data.train), len(data.test)) == (("cat", "dog"), 16, 4)
    assert sorted(data.test.y.tolist()) == [0, 0, 1, 1]
    assert ((data.train.x.float().mean((1, 2, 3)) > 100) == data.train.y.bool()).all()
    assert data.test.x.tolist() != load(str(photos), seed=1).test.x.tolist()


@pytest.mark.parametrize("second", ["test", "val"])
def test_a_test_folder_is_used_if_there_is_one(tmp_path, second):
    for part, count in (("train", 3), (second, 2)):
        for name in ("a", "b"):
            for i in range(count):
                picture(tmp_path / part / name / f"{i}.png")
    data = load(str(tmp_path))
    assert (len(data.train), len(data.test), data.classes) == (6, 4, ("a", "b"))


def test_a_class_may_be_called_train(tmp_path):
    for name in ("plane", "train"):
        picture(tmp_path / name / "0.png")
    assert load(str(tmp_path), test=0).classes == ("plane", "train")


def test_gray_images_have_one_channel_unless_asked(tmp_path):
    for name in ("a", "b"):
        picture(tmp_path / name / "0.png", mode="L")
    assert load(str(tmp_path), test=0).shape == (1, 4, 6)
    assert load(str(tmp_path), test=0, channels=3).shape == (3, 4, 6)
    picture(tmp_path / "a" / "1.png")
    assert load(str(tmp_path), test=0).shape == (3, 4, 6)
    assert load(str(tmp_path), test=0, channels=1).shape == (1, 4, 6)


def test_images_of_several_sizes_need_a_size(photos):
    picture(photos / "dog" / "large.png", size=(8, 9))
    with pytest.raises(DataError, match=r"one size, got 4 × 6 .* and 8 × 9 \(large\.png\): give size="):
        load(str(photos))
    assert load(str(photos), size=5).shape == (3, 5, 5)
    assert load(str(photos), size=(5, 7)).shape == (3, 5, 7)


def test_a_turned_photograph_is_put_upright(tmp_path):
    for name in ("a", "b"):
        picture(tmp_path / name / "0.png")
        exif = Image.Exif()
        exif[0x0112] = 6
        Image.open(tmp_path / name / "0.png").save(tmp_path / name / "0.jpg", exif=exif)
        (tmp_path / name / "0.png").unlink()
    assert load(str(tmp_path), test=0).shape == (3, 6, 4)


def test_a_broken_image_is_named(photos):
    (photos / "cat" / "broken.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"broken\.png cannot be read as an image"):
        load(str(photos))


def test_an_image_cut_off_is_named(photos):
    picture(photos / "cat" / "cut.png")
    whole = (photos / "cat" / "cut.png").read_bytes()
    (photos / "cat" / "cut.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"cut\.png cannot be read as an image"):
        load(str(photos))


def test_an_image_of_sixteen_bits_is_refused(photos):
    Image.fromarray(np.zeros((4, 6), np.uint16)).save(photos / "cat" / "deep.png")
    with pytest.raises(DataError, match=r"deep\.png has more than 8 bits"):
        load(str(photos))


def test_an_empty_class_is_named(photos):
    (photos / "bird").mkdir()
    (photos / "bird" / "notes.txt").write_text("none yet")
    with pytest.raises(DataError, match="bird holds no images"):
        load(str(photos))


def test_a_folder_without_classes_is_refused(tmp_path):
    picture(tmp_path / "0.png")
    with pytest.raises(DataError, match="must hold a folder of images for each class, at least two, got 0"):
        load(str(tmp_path))


def test_a_test_class_that_training_lacks_is_named(tmp_path):
    for name in ("train/a", "train/b", "test/a", "test/c"):
        picture(tmp_path / name / "0.png")
    with pytest.raises(DataError, match="the test folder has the class 'c'"):
        load(str(tmp_path))


@pytest.mark.parametrize(("options", "said"), [({"size": 0}, "size must be"), ({"channels": 2}, "channels must be 1 or 3")])
def test_options_that_make_no_sense_are_refused(photos, options, said):
    with pytest.raises(DataError, match=said):
        load(str(photos), **options)
