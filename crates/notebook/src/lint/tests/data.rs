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
    ] {
        assert_eq!(missing(&["sales.csv"], cell), 0, "{cell}");
    }
}

#[test]
fn only_what_may_make_the_missing_file_keeps_it_from_being_told() {
    let missing = |before: &str, after: &str| {
        let cell = format!("import pandas as pd\n{before}\ndf = pd.read_csv('data/sales.csv')\n{after}");
        let found = beside(&[], "  env: {requirements: [pandas, pooch, gdown]}\n", &cell);
        let found = found.iter().filter(|(code, _)| *code == Code::DataMissing);
        found.count()
    };
    for (before, after) in [
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
    ] {
        assert_eq!(missing(before, after), 1, "{before}{after}");
    }
    for before in [
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
    ] {
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
