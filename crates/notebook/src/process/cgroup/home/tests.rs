//! Hierarchies as machines and containers have them, as folders that look like them.

use super::*;

/// A folder in the place of a mounted hierarchy.
struct Fake(tempfile::TempDir);

impl Fake {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    /// Adds a cgroup with controllers, and a process.
    fn cgroup(&self, path: &str, controllers: &str) -> PathBuf {
        let folder = self.0.path().join(path);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("cgroup.procs"), "").expect("a file");
        fs::write(folder.join("cgroup.controllers"), controllers).expect("a file");
        fs::write(folder.join("cgroup.subtree_control"), "").expect("a file");
        folder
    }

    fn mounted(&self, root: &str, options: &str) -> String {
        let point = self.0.path().display();
        format!(
            "22 1 0:5 / /proc rw - proc proc rw\n41 31 0:38 {root} {point} {options},relatime shared:9 - cgroup2 cgroup2 rw\n"
        )
    }
}

#[test]
fn attempts_cgroups_are_made_below_the_agents_own_wherever_the_hierarchy_is_mounted() {
    let fake = Fake::new();
    let own = fake.cgroup("user.slice/run-7.scope", "memory pids");
    let rows = [
        ("/", "5:memory:/elsewhere\n0::/user.slice/run-7.scope\n"),
        ("/kubepods", "0::/kubepods/user.slice/run-7.scope\n"),
    ];
    for (root, text) in rows {
        let home = Home::of(text, &fake.mounted(root, "rw")).expect("it is there");
        assert_eq!(home.folder, own, "{root}");
        let cgroup = home.cgroup("blueproof-a-r-1.1");
        assert_eq!(cgroup.folder(), own.join("blueproof-a-r-1.1"));
    }
}

#[test]
fn an_agent_in_the_leaf_makes_cgroups_beside_the_leaf_and_not_below_it() {
    let fake = Fake::new();
    fake.cgroup("", "");
    fake.cgroup(LEAF, "");
    let home = Home::of(&format!("0::/{LEAF}\n"), &fake.mounted("/", "rw")).expect("it is there");
    assert_eq!((home.folder.as_path(), home.is_ours), (fake.0.path(), true));
}

#[test]
fn where_no_cgroup_can_be_made_it_is_said_why() {
    let fake = Fake::new();
    let rows = [
        ("1:cpu:/\n", fake.mounted("/", "rw"), "has no cgroup v2"),
        ("0::/\n", String::new(), "not mounted"),
        ("0::/\n", fake.mounted("/elsewhere", "rw"), "not mounted"),
        ("0::/../..\n", fake.mounted("/../../a", "rw"), "not mounted"),
        ("0::/\n", fake.mounted("/", "ro"), "to be read only"),
        ("0::/gone\n", fake.mounted("/", "rw"), "not delegated"),
    ];
    for (own, mounts, expected) in rows {
        let why = Home::of(own, &mounts).expect_err(expected);
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn a_controller_that_is_there_is_given_and_one_that_is_not_is_named() {
    let fake = Fake::new();
    let own = fake.cgroup("", "memory pids");
    let home = Home::at(own.clone(), true).expect("it is ours");
    home.give("memory").expect("it is there");
    let written = fs::read_to_string(own.join("cgroup.subtree_control")).expect("a file");
    assert_eq!(written, "+memory");
    let why = home.give("cpu").expect_err("it is not there");
    assert!(why.contains("no controller `cpu`"), "{why}");
}

#[test]
fn processes_of_somebody_elses_cgroup_are_not_moved_and_it_is_said_how_to_have_one() {
    let fake = Fake::new();
    let home = Home::at(fake.cgroup("", "memory"), false).expect("it is ours");
    let why = home.not_given("memory", &io::ErrorKind::ResourceBusy.into());
    assert!(why.contains("-p Delegate=yes"), "{why}");
    assert!(!fake.0.path().join(LEAF).exists());
}
