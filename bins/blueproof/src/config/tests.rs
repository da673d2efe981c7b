//! Who wins, and what is said about mistakes.

use std::fs;

use blueproof_diagnostic::{Code, Diagnostic};
use tempfile::TempDir;

use super::*;

/// A home, a project with a folder in it, and a machine.
struct World {
    root: TempDir,
    flags: ConfigFlags,
    process_env: ProcessEnv,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let path = |name: &str| root.path().join(name);
        fs::create_dir_all(path("project/below")).expect("a folder");
        let process_env = ProcessEnv {
            variables: [("HOME".into(), path("home").into())].into(),
            folder: path("project/below"),
            machine: path("etc"),
        };
        let flags = ConfigFlags {
            store: None,
            server: None,
            context: None,
            config: None,
        };
        Self {
            root,
            flags,
            process_env,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes a configuration file with these lines below its head, from line 3 on.
    fn write(&self, name: &str, lines: &str) {
        self.write_all(
            name,
            &format!("apiVersion: blueproof.dev/v1alpha1\nkind: Config\n{lines}\n"),
        );
    }

    fn write_all(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn set(&mut self, variable: &str, value: &str) {
        self.process_env.variables.insert(variable.into(), value.into());
    }

    fn load(&self) -> Config {
        Config::load(&self.flags, &self.process_env).expect("a good configuration")
    }

    fn error(&self) -> Diagnostic {
        let problem = Config::load(&self.flags, &self.process_env).expect_err("a bad configuration");
        assert_eq!(problem.exit, crate::exit::Exit::Usage);
        problem.diagnostics.into_iter().next().expect("a diagnostic")
    }
}

const PROJECT: &str = "project/.blueproof/config.yaml";
const USER: &str = "home/.config/blueproof/config.yaml";
const MACHINE: &str = "etc/config.yaml";

#[test]
fn whoever_is_nearer_wins() {
    let mut world = World::new();
    let file = |world: &World, name: &str| Origin::File {
        path: world.path(name),
        line: 3,
    };
    assert_eq!(
        world.load().store.value,
        world.path("home/.local/share/blueproof/blueproof.db")
    );
    assert_eq!(world.load().store.origin, Origin::BuiltIn);
    for name in [MACHINE, USER, PROJECT, "named.yaml"] {
        world.write(name, "store: a.db");
        if name == "named.yaml" {
            world.set("BLUEPROOF_CONFIG", "../../named.yaml");
        }
        let store = world.load().store;
        let path = if name == "named.yaml" {
            "project/below/../../named.yaml"
        } else {
            name
        };
        assert_eq!(store.origin, file(&world, path), "{name}");
        assert_eq!(store.value, world.path(path).with_file_name("a.db"), "{name}");
    }
    world.set("BLUEPROOF_STORE", "b.db");
    assert_eq!(world.load().store.origin, Origin::Variable("BLUEPROOF_STORE"));
    assert_eq!(world.load().store.value, world.path("project/below/b.db"));
    world.flags.store = Some("c.db".into());
    assert_eq!(world.load().store.origin, Origin::Flag("--store"));
    assert_eq!(world.load().store.value, world.path("project/below/c.db"));
    assert_eq!(world.load().runs(), world.path("project/below/runs"));
}

#[test]
fn each_value_is_taken_from_whoever_gives_it() {
    let mut world = World::new();
    world.write(PROJECT, "local: {cpu: 2}\npython: python3.12");
    world.write(USER, "local:\n  cpu: 500m\n  memory: 1.5Gi\n  selfApprove: false\nenvironments: ~/envs\npython: ~/bin/python");
    world.set("BLUEPROOF_LOCAL_MEMORY", "2Gi");
    let config = world.load();
    assert_eq!(config.local_cpu.value, Some(Cpus::cores(2)));
    assert_eq!(config.local_memory.value, Some(Bytes(2 << 30)));
    assert_eq!(config.local_self_approve.value, LocalApproval::Required);
    assert_eq!(
        config.local_self_approve.origin.to_string(),
        format!("{}:6", world.path(USER).display())
    );
    assert_eq!(config.environments.value, world.path("home/envs"));
    assert_eq!(
        config.python.value,
        Some("python3.12".into()),
        "a name is left to PATH"
    );
    fs::remove_file(world.path(PROJECT)).expect("it is there");
    assert_eq!(world.load().python.value, Some(world.path("home/bin/python")));
}

#[test]
fn xdg_folders_are_heeded_where_they_are_absolute() {
    let mut world = World::new();
    world.set("XDG_DATA_HOME", "/data");
    world.set("XDG_CACHE_HOME", "relative");
    assert_eq!(
        world.load().store.value,
        Path::new("/data/blueproof/blueproof.db")
    );
    assert_eq!(
        world.load().environments.value,
        world.path("home/.cache/blueproof/environments")
    );
}

#[test]
fn without_a_home_it_is_said_what_to_set() {
    let mut world = World::new();
    world.process_env.variables.clear();
    assert_eq!(world.error().code, Code::NoHome);
    world.set("BLUEPROOF_STORE", "/a.db");
    assert_eq!(world.error().code, Code::NoHome);
    world.set("BLUEPROOF_ENVIRONMENTS", "/envs");
    assert_eq!(world.load().store.value, Path::new("/a.db"));
}

#[test]
fn a_home_that_is_no_whole_path_is_said_to_be_that() {
    let mut world = World::new();
    world.process_env.variables.clear();
    world.set("HOME", "rel");
    let refused = world.error();
    assert_eq!(refused.code, Code::NoHome);
    assert!(
        refused.message.ends_with("HOME is no whole path: `rel`"),
        "{refused:?}"
    );
}

#[test]
fn mistakes_are_shown_at_their_place() {
    let cases = [
        ("stoer: a", Code::UnknownKey, Some((3, 1)), "write `store`"),
        (
            "local:\n  selfapprove: true",
            Code::UnknownKey,
            Some((4, 3)),
            "write `selfApprove`",
        ),
        ("zzz: 1", Code::UnknownKey, Some((3, 1)), "known here are"),
        (
            "local: {cpu: many}",
            Code::ConfigValue,
            Some((3, 14)),
            "schema config",
        ),
        (
            "local: {cpu: 0}",
            Code::ConfigValue,
            Some((3, 14)),
            "schema config",
        ),
        (
            "local: {cpu: [1]}",
            Code::ConfigValue,
            Some((3, 14)),
            "schema config",
        ),
        (
            "local: {selfApprove: perhaps}",
            Code::ConfigValue,
            Some((3, 22)),
            "schema config",
        ),
        ("local: 3", Code::ConfigValue, Some((3, 8)), "schema config"),
        ("store: \"\"", Code::ConfigValue, Some((3, 8)), "schema config"),
        (
            "store: a\nstore: b",
            Code::ConfigValue,
            Some((4, 1)),
            "schema config",
        ),
        ("store: [", Code::ConfigValue, Some((3, 8)), "schema config"),
    ];
    for (lines, code, spot, hint) in cases {
        let world = World::new();
        world.write(USER, lines);
        let error = world.error();
        let place = error.place.clone().expect("a place");
        assert_eq!(error.code, code, "{lines}: {error:?}");
        assert_eq!(place.line.zip(place.column), spot, "{lines}: {error:?}");
        assert_eq!(place.file, world.path(USER).display().to_string());
        assert!(
            error.hints.iter().any(|text| text.contains(hint)),
            "{lines}: {error:?}"
        );
    }
}

#[test]
fn a_file_of_another_kind_or_version_is_refused() {
    for text in [
        "",
        "kind: Config\n",
        "apiVersion: blueproof.dev/v2\nkind: Config\n",
        "apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\n",
        "- a\n",
    ] {
        let world = World::new();
        world.write_all(USER, text);
        assert_eq!(world.error().code, Code::ConfigValue, "{text}");
    }
}

#[test]
fn a_bad_variable_is_named() {
    let mut world = World::new();
    world.set("BLUEPROOF_LOCAL_SELF_APPROVE", "yes");
    let error = world.error();
    assert_eq!(error.code, Code::ConfigValue);
    assert_eq!(
        error.place,
        Some(blueproof_diagnostic::SourceLocation::file(
            "BLUEPROOF_LOCAL_SELF_APPROVE"
        ))
    );
    world.set("BLUEPROOF_LOCAL_SELF_APPROVE", "");
    assert_eq!(
        world.load().local_self_approve.origin,
        Origin::BuiltIn,
        "empty is not set"
    );
}

#[test]
fn what_is_tested_does_not_decide_who_approves_it() {
    let world = World::new();
    for setting in [
        "local: {selfApprove: true}",
        "local: {approvers: [mallory]}",
        "local: {isolation: disposable}",
    ] {
        world.write(PROJECT, setting);
        let error = world.error();
        assert_eq!(error.code, Code::ConfigNotHere, "{setting}");
        assert_eq!(error.place.and_then(|place| place.line), Some(3));
    }
}

#[test]
fn a_machine_is_disposable_only_where_its_admin_says_so() {
    let mut world = World::new();
    assert_eq!(world.load().local_isolation.value, IsolationPolicy::Strangers);
    world.write(USER, "local: {isolation: disposable}");
    assert_eq!(world.load().local_isolation.value, IsolationPolicy::Disposable);
    world.set("BLUEPROOF_LOCAL_ISOLATION", "always");
    assert_eq!(world.load().local_isolation.value, IsolationPolicy::Always);
    world.set("BLUEPROOF_LOCAL_ISOLATION", "none");
    assert_eq!(world.error().code, Code::ConfigValue);
}

#[test]
fn approvers_are_a_list_in_a_file_and_names_with_commas_in_a_variable() {
    let world = World::new();
    world.write(USER, "local: {approvers: [ada, cleo]}");
    let named = Vec::from_iter(world.load().local_approvers.value);
    assert_eq!(named, ["ada", "cleo"]);
    world.write(USER, "local: {approvers: [ada lovelace]}");
    assert_eq!(world.error().code, Code::ConfigValue);
}

#[test]
fn a_file_that_was_named_must_be_there_and_others_need_not() {
    let mut world = World::new();
    world.flags.config = Some("nowhere.yaml".into());
    assert_eq!(world.error().code, Code::ConfigUnreadable);
    world.flags.config = None;
    let presence = |config: &Config| {
        config
            .layers
            .iter()
            .map(|layer| layer.presence)
            .collect::<Vec<_>>()
    };
    assert_eq!(presence(&world.load()), [Presence::Missing, Presence::Missing]);
    world.write(USER, "");
    assert_eq!(presence(&world.load()), [Presence::Read, Presence::Missing]);
    fs::create_dir_all(world.path(MACHINE)).expect("a folder");
    assert_eq!(world.error().code, Code::ConfigUnreadable, "a folder is no file");
}

#[test]
fn what_is_shown_can_be_a_file() {
    let world = World::new();
    world.write(
        USER,
        "local: {cpu: 1500m, memory: 1Gi, selfApprove: false}\npython: python3",
    );
    let before = world.load();
    let document = crate::output::Document::new("Config", before.as_file());
    let text = crate::output::encode(&document, crate::output::Encoding::Yaml).expect("it can be written");
    world.write_all(USER, &text);
    let after = world.load();
    let values = |config: &Config| {
        let entries = config.entries().into_iter();
        entries.map(|(key, value, _)| (key, value)).collect::<Vec<_>>()
    };
    assert_eq!(values(&after), values(&before));
}

const CONTEXTS: &str = "contexts:
  team: {server: 'https://blueproof.example.org', tokenFile: team-token}
  old: {store: old.db}
server: unix:/run/blueproof.sock
tokenFile: token";

fn in_use(world: &World) -> (Option<String>, Option<String>, Option<PathBuf>, PathBuf) {
    let config = world.load();
    let server = config.server.value.map(|server| server.to_string());
    (
        config.context.value,
        server,
        config.token_file.value,
        config.store.value,
    )
}

#[test]
fn a_context_is_a_scheduler_with_its_token_or_a_store_and_nothing_of_another() {
    let mut world = World::new();
    world.write(USER, CONTEXTS);
    let at_home = |name: &str| world.path(USER).with_file_name(name);
    let (token, team_token, old) = (at_home("token"), at_home("team-token"), at_home("old.db"));
    let built_in = world.path("home/.local/share/blueproof/blueproof.db");
    let socket = Some("unix:/run/blueproof.sock".to_owned());
    let team = Some("https://blueproof.example.org".to_owned());
    assert_eq!(in_use(&world), (None, socket, Some(token), built_in.clone()));

    world.write(USER, &format!("{CONTEXTS}\ncurrentContext: team"));
    let of_team = (Some("team".to_owned()), team, Some(team_token), built_in);
    assert_eq!(in_use(&world), of_team, "a file's context goes before its server");

    world.set("BLUEPROOF_CONTEXT", "old");
    let of_old = (Some("old".to_owned()), None, None, old);
    assert_eq!(in_use(&world), of_old, "a variable goes before a file");

    world.set("BLUEPROOF_SERVER", "unix:/other.sock");
    let other = Some("unix:/other.sock".to_owned());
    let (context, server, _, _) = in_use(&world);
    assert_eq!(
        (context, server),
        (None, other),
        "a server that is named is meant, and no context"
    );

    world.flags.context = Some("team".into());
    assert_eq!(in_use(&world), of_team, "a flag goes before a variable");
    assert_eq!(world.load().context.origin, Origin::Flag("--context"));

    world.flags.context = None;
    world.flags.store = Some("here.db".into());
    let here = world.path("project/below/here.db");
    let (context, server, _, store) = in_use(&world);
    assert_eq!((context, server, store), (None, None, here));
}

#[test]
fn a_token_of_a_context_goes_to_no_other_server() {
    let mut world = World::new();
    world.write(
        USER,
        "contexts: {team: {server: 'https://blueproof.example.org', tokenFile: t}}\ncurrentContext: team",
    );
    world.set("BLUEPROOF_SERVER", "https://elsewhere.example.org");
    assert_eq!(world.load().token_file.value, None);
    world
        .process_env
        .variables
        .remove(std::ffi::OsStr::new("BLUEPROOF_SERVER"));
    world.flags.server = Some("https://elsewhere.example.org".into());
    assert_eq!(world.load().token_file.value, None);
}

#[test]
fn a_context_that_is_not_there_or_says_nothing_is_refused_with_those_that_are() {
    let mut world = World::new();
    world.flags.context = Some("team".into());
    let none = world.error();
    assert_eq!(none.code, Code::ConfigValue);
    assert_eq!(none.message, "no context exists with the name `team`");
    world.write(USER, CONTEXTS);
    world.flags.context = Some("tema".into());
    assert_eq!(world.error().hints, ["those that there are: old, team"]);
    world.flags.context = None;
    for context in [
        "{}",
        "{server: 'unix:/a', store: a.db}",
        "{store: a.db, tokenFile: t}",
    ] {
        world.write(USER, &format!("contexts: {{a: {context}}}"));
        let error = world.error();
        assert_eq!(
            (error.code, error.place.and_then(|place| place.line)),
            (Code::ConfigValue, Some(3)),
            "{context}"
        );
    }
}

#[test]
fn what_is_tested_does_not_decide_in_which_context() {
    let world = World::new();
    for setting in ["currentContext: team", "contexts: {team: {store: a.db}}"] {
        world.write(PROJECT, setting);
        assert_eq!(world.error().code, Code::ConfigNotHere, "{setting}");
    }
}

#[test]
fn the_current_context_is_chosen_though_the_one_before_is_gone() {
    let world = World::new();
    world.write(USER, &format!("{CONTEXTS}\ncurrentContext: gone"));
    assert_eq!(world.error().message, "no context exists with the name `gone`");
    Config::use_context("old", &world.flags, &world.process_env).expect("it is there");
    assert_eq!(world.load().context.value.as_deref(), Some("old"));
    let names = world.load().contexts.into_iter().map(|context| context.name);
    assert_eq!(names.collect::<Vec<_>>(), ["old", "team"]);
    Config::use_context("gone", &world.flags, &world.process_env).expect_err("it is gone");
}
