//! Files that are read and not there.

use super::*;

#[test]
fn a_file_that_is_read_and_not_there_is_told() {
    let missing = |files: &[&str], cell: &str| {
        let found = beside(files, "  env: {requirements: [pandas, requests]}\n", cell);
        found
            .iter()
            .filter(|(code, _)| *code == Code::DataMissing)
            .count()
    };
    for cell in [
        "import pandas as pd\npd.read_csv('there/sales.csv')",
        "PATH = 'sales.csv'\nopen(PATH).read()",
        "from pathlib import Path\nPath('notes.txt').read_text()",
        "import numpy as np\nnp.load(file='x.npy')",
        "import pandas as pd\npd.read_csv('sales.csv')\npd.read_csv('sales.csv')",
        "open('../../etc/hostname.txt')",
        "import contextlib\nwith contextlib.closing(x):\n    open('optional.txt')",
    ] {
        assert_eq!(missing(&[], cell), 1, "{cell}");
    }
    for cell in [
        "import pandas as pd\npd.read_csv('sales.csv')",
        "import pandas as pd\npd.read_csv('https://x.example/other.csv')",
        "open('out.txt', 'w').write('x')\nopen('out.txt')",
        "!wget https://x.example/other.csv\nopen('other.csv')",
        "import requests\nname = 'other.csv'\nsave(name)\nopen(name)",
        "import os\nif os.path.exists('other.csv'):\n    open('other.csv')",
        "import webbrowser\nwebbrowser.open('page.html')",
        "import contextlib\nwith contextlib.suppress(FileNotFoundError):\n    open('optional.txt')",
        "from contextlib import suppress\nwith suppress(OSError, ValueError) as s:\n    open('optional.txt').read()",
    ] {
        assert_eq!(missing(&["sales.csv"], cell), 0, "{cell}");
    }
}

/// What stands before and after a cell reads `data/sales.csv`, and does not make it.
const OF_OTHERS: &[(&str, &str)] = &[
    (
        "",
        "second = df.copy()\ndf = df.rename(columns={'a': 'b'})\ndf.replace('a', 'b')",
    ),
    ("frame = pd.DataFrame()\nframe.copy().rename('a')", ""),
    ("trainer.run()\nimport asyncio\nasyncio.run(main)", ""),
    ("import copy\ncopy.copy(x)", ""),
    ("import shutil\nshutil.copy('/in/other.csv', 'data')", ""),
    ("import os\nos.rename('old', 'new')", ""),
    ("rows = cursor.fetchall()", ""),
    (
        "from urllib.request import urlretrieve\nurlretrieve(url, 'other.csv')",
        "",
    ),
    ("!wget https://x.example/other.csv", ""),
    ("!cp /in/other.csv data", ""),
    ("!mv old new", ""),
    ("import subprocess\nsubprocess.run(['ls', '-l'])", ""),
    ("", "!git clone https://x.example/data"),
    ("import shutil\nshutil.copytree('/in', 'models')", ""),
    (
        "from huggingface_hub import snapshot_download\nsnapshot_download('Qwen/Qwen2.5-0.5B', local_dir='model')",
        "",
    ),
    ("s3.download_file('my.bucket', key, 'other.csv')", ""),
    ("import os\nos.popen('ls').read()", ""),
    ("import platform\nplatform.system()", ""),
    ("!nvidia-smi && python --version", ""),
    ("%matplotlib inline\n!pip install -q pooch==1.0 > log", ""),
    (
        "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'pooch==1.0'])",
        "",
    ),
    ("!if [ ! -d x ]; then mkdir x; fi", ""),
    ("!cp -r /in models 2>/dev/null", ""),
    (
        "frame = frames[0]\nframe.rename({'a': 'b'})\nframe.copy(True)",
        "",
    ),
    ("x = pd.to_datetime(days)\nframe.to_csv('other.csv')", ""),
    ("with open('other.csv', 'w') as f:\n    f.write(text)", ""),
    ("import json\njson.load(open(path))", ""),
];
/// What stands before it and may.
const MAKERS: &[&str] = &[
    "import shutil\nshutil.copytree('/in', 'data')",
    "import shutil\nshutil.copy(source, target)",
    "from shutil import move\nmove('/in/sales.csv', 'data')",
    "import os\nos.rename('old', 'data')",
    "from pathlib import Path\nPath('old').rename('data/sales.csv')",
    "from pathlib import Path\nPath('old').rename(new)",
    "from urllib.request import urlretrieve\nurlretrieve('https://x.example/sales.csv', name)",
    "import pooch\npooch.retrieve(url)",
    "import subprocess\nsubprocess.run(command)",
    "import subprocess\nsubprocess.run(['unzip', 'x.zip'])",
    "archive.extractall()",
    "!wget -P data https://x.example/sales.csv",
    "!wget -i all.txt",
    "!curl -L $URL",
    "!cp -r /in data",
    "!unzip x.zip",
    "load_dataset_download()",
    "snapshot_download('Qwen/Qwen2.5-0.5B', local_dir='data')",
    "snapshot_download('meta-llama/Llama-3.1-8B')",
    "s3.download_file('my.bucket', key, target)",
    "Repo.clone_from('git@x.example:x/y.git', 'data')",
    "import os\nos.chdir('../v1.0')",
    "from shutil import unpack_archive\nunpack_archive('x.tar.zst')",
    "!mv /in/v1.0 data",
    "archive.extractall('data')",
    "datasets.MNIST('raw', download=True)",
    "import os\nos.popen('cp -r /in data').read()",
    "import os\nos.system('./get_data.sh')",
    "import subprocess as sp\nsp.run(['bash', 'download_data.sh'])",
    "import subprocess\nsubprocess.run('cp -r /in x', shell=True, cwd='data')",
    "!if [ ! -d data ]; then cp -r /in data; fi",
    "!time cp -r /in data",
    "!(cp -r /in data)",
    "!sudo cp -r /in data",
    "!cp -r /in data 2>/dev/null",
    "!cp -r /in \"data\"",
    "!cp -r /in ./data/  # all of it",
    "!ln -s /in/data",
    "!cat parts > $OUT",
    "!find . -name '*.bak' -exec ./restore {} ';'",
    "%cd elsewhere",
    "%sx cp -r /in data",
    "from pathlib import Path\np = Path('/mnt') / name\np.rename(out)",
    "from pathlib import Path\nfor f in Path('raw').iterdir():\n    f.rename(Path('data') / f.name)",
    "from pathlib import Path\nPath('data').symlink_to('/in')",
    "import shutil\nshutil.copytree('/in', '/content/data')",
    "for year in years:\n    frame.to_csv(f'data/{year}.csv')",
    "for name in names:\n    with open(f'data/{name}', 'wb') as f:\n        f.write(text)",
    "for name in names:\n    (out / name).open('w').write(text)",
    "for name in names:\n    (out / name).write_text(text)",
    "import os\nfor name in names:\n    frame.to_csv(os.path.join('data', name))",
    "frame.to_csv('data/sales')",
    "model.save_pretrained('data')",
];

#[test]
fn only_what_may_make_the_missing_file_keeps_it_from_being_told() {
    let missing = |before: &str, after: &str| {
        let cell = format!("import pandas as pd\n{before}\ndf = pd.read_csv('data/sales.csv')\n{after}");
        let found = beside(&[], "  env: {requirements: [pandas, pooch, gdown]}\n", &cell);
        let found = found.iter().filter(|(code, _)| *code == Code::DataMissing);
        found.count()
    };
    for (before, after) in OF_OTHERS {
        assert_eq!(missing(before, after), 1, "{before}{after}");
    }
    for before in MAKERS {
        assert_eq!(missing(before, ""), 0, "{before}");
    }
}

#[test]
fn however_often_a_missing_file_is_read_it_is_looked_for_once() {
    let read = "pd.read_csv('sales.csv')\n".repeat(4000);
    for (before, expected) in [("", 1), ("names = ['sales.csv']\n", 0)] {
        let cell = format!("import pandas as pd\n{before}{read}");
        let found = beside(&[], "  env: {requirements: [pandas]}\n", &cell);
        let missing = found.iter().filter(|(code, _)| *code == Code::DataMissing);
        assert_eq!(missing.count(), expected, "{before}");
    }
}

#[test]
fn what_a_command_makes_before_the_call_that_comes_to_a_read_is_there() {
    let missing = |cells: &[&str]| {
        let found = checked("  env: {requirements: [pandas]}\n", cells).into_iter();
        let found = found.filter(|found| found.code == Code::DataMissing);
        found.map(|found| found.message).collect::<Vec<_>>()
    };
    let read = "import pandas as pd\ndef load():\n    return pd.read_csv('data/sales.csv')\n";
    let with = |lines: &str| format!("{read}{lines}");
    assert_eq!(missing(&[&with("!unzip data.zip\ndf = load()")]), [""; 0]);
    assert_eq!(missing(&[&with("df = load()\n!unzip data.zip")]).len(), 1);
    assert_eq!(missing(&[read, "!unzip data.zip", "df = load()"]), [""; 0]);
    assert_eq!(missing(&[read, "%%R\nfetch()", "df = load()"]), [""; 0]);
    assert_eq!(missing(&[read, "%%html\n<b>", "df = load()"]).len(), 1);
    let told = missing(&[read, "\n\n\ndf = load()"]);
    assert_eq!(
        told,
        ["cell 2: `read_csv` reads \"data/sales.csv\", which is not there"]
    );
}
