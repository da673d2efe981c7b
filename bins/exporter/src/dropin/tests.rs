//! What is understood of dcgm-exporter's options, passed over or refused.

use super::*;

fn judged(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Vec<String>, Vec<String>> {
    let arguments = ["blueproof-exporter"].iter().chain(arguments).map(OsString::from);
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let kept = without_others(arguments, variables);
    kept.map(|kept| {
        kept.into_iter()
            .skip(1)
            .map(|one| one.to_string_lossy().into_owned())
            .collect()
    })
    .map_err(|problems| problems.into_iter().map(|problem| problem.message).collect())
}

#[test]
fn what_cannot_be_kept_to_is_refused_by_name() {
    for (arguments, variables, name) in [
        (
            &["--kubernetes-enable-pod-labels"][..],
            &[][..],
            "`--kubernetes-enable-pod-labels`",
        ),
        (&["-m", "ns:name"], &[], "`--configmap-data`"),
        (&["--switch-devices=g:0"], &[], "`--switch-devices`"),
        (
            &[],
            &[("DCGM_EXPORTER_CONFIG_FILE", "/etc/x.yaml")],
            "`DCGM_EXPORTER_CONFIG_FILE`",
        ),
        (
            &[],
            &[("KUBERNETES_ENABLE_DRA", "true")],
            "`KUBERNETES_ENABLE_DRA`",
        ),
        (
            &[],
            &[("DCGM_EXPORTER_OF_TOMORROW", "1")],
            "`DCGM_EXPORTER_OF_TOMORROW`",
        ),
    ] {
        let problems = judged(arguments, variables).expect_err(name);
        assert!(
            problems.len() == 1 && problems[0].contains(name),
            "{name}: {problems:?}"
        );
    }
}

/// Returns what options and variables come to, as a process of their own reads them.
fn settled(arguments: &[&str]) -> (Cli, Settings) {
    let cli = <Cli as clap::Parser>::try_parse_from([&["blueproof-exporter"], arguments].concat());
    let cli = cli.unwrap_or_else(|why| panic!("{arguments:?}: {why}"));
    let settings = settings(&cli).unwrap_or_else(|why| panic!("{arguments:?}: {why}"));
    (cli, settings)
}

#[test]
fn each_variable_of_dcgm_exporter_that_is_understood_is_that_of_an_option() {
    let command = <Cli as clap::CommandFactory>::command();
    let variables: Vec<_> = command.get_arguments().filter_map(clap::Arg::get_env).collect();
    for variable in UNDERSTOOD {
        assert!(variables.iter().any(|known| known == variable), "{variable}");
    }
}

#[test]
fn any_option_of_dcgm_exporter_puts_it_in_its_place() {
    let (_, ours) = settled(&[]);
    assert_eq!(
        (ours.listen.addresses[0].port(), ours.page),
        (9477, PageKind::Native)
    );
    for arguments in [
        &["--dcgm-exporter"][..],
        &["-k"],
        &["-n"],
        &["-c", "30000"],
        &["-d", "f"],
        &["--web-config-file", "web.yml"],
        &["--pod-resources-kubelet-socket", "/kubelet.sock"],
        &["--replace-blanks-in-model-name"],
        &["--kubernetes-enable-pod-uid"],
        &["--nvidia-resource-names", "a.b/c"],
    ] {
        let (_, settings) = settled(arguments);
        let told = (settings.listen.addresses[0].port(), settings.page);
        assert_eq!(told, (9400, PageKind::Dcgm), "{arguments:?}");
    }
    let (cli, settings) = settled(&["-a", "127.0.0.1:1234", "--nvidia-resource-names", "a.b/c,d.e/f"]);
    assert_eq!(settings.listen.addresses[0].port(), 1234);
    assert_eq!(cli.drop_in.nvidia_resource_names, ["a.b/c", "d.e/f"]);
    assert!(!cli.drop_in.asks_kubelet() && settled(&["-k"]).0.drop_in.asks_kubelet());
    let chosen = <Cli as clap::Parser>::try_parse_from(["blueproof-exporter", "-d", "g:0"]);
    assert!(
        super::settings(&chosen.expect("it is read")).is_err(),
        "some devices alone"
    );
}

#[test]
fn what_changes_nothing_is_asked_of_dcgm_exporter_all_the_same() {
    for arguments in [
        &["--debug"][..],
        &["-r", "host:5555"],
        &["-x", "5"],
        &["--enable-dcgm-log"],
        &["--kubernetes-gpu-id-type", "uid"],
    ] {
        let kept = judged(arguments, &[]).expect("nothing is refused");
        assert_eq!(kept, ["--dcgm-exporter"], "{arguments:?}");
    }
    for variable in [
        ("DCGM_EXPORTER_DEBUG", "true"),
        ("DCGM_EXPORTER_NO_HOSTNAME", "false"),
        ("DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE", "uid"),
        ("DCGM_REMOTE_HOSTENGINE_INFO", "host:5555"),
        ("NVIDIA_RESOURCE_NAMES", "a.b/c"),
    ] {
        let kept = judged(&["--dcgm-exporter"], &[variable]).expect("nothing is refused");
        assert_eq!(kept, ["--dcgm-exporter"], "it is there once: {variable:?}");
        let kept = judged(&[], &[variable]).expect("nothing is refused");
        assert_eq!(kept, ["--dcgm-exporter"], "{variable:?}");
    }
    let health = judged(&["health"], &[("DCGM_EXPORTER_DEBUG", "true")]);
    assert_eq!(health.expect("a command is its own"), ["health"]);
}

#[test]
fn what_changes_nothing_is_passed_over_and_the_rest_is_kept() {
    let arguments = [
        "--debug",
        "-r",
        "localhost:5555",
        "-f",
        "a.csv",
        "--log-format=text",
        "-k",
        "--configmap-data",
        "none",
    ];
    let variables = [
        ("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "false"),
        ("DCGM_EXPORTER_LISTEN", ":9400"),
        ("PATH", "/bin"),
    ];
    let kept = judged(&arguments, &variables).expect("nothing is refused");
    assert_eq!(kept, ["--dcgm-exporter", "-f", "a.csv", "-k"]);
    let job = ["job", "--", "program", "--debug", "-r"];
    assert_eq!(judged(&job, &[]).expect("a command is its own"), job);
}
