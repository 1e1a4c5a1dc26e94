//! The `lacewing` command as a user runs it.

use std::process::{Command, Output};

use serde_json::Value;

fn lacewing(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lacewing")).args(arguments).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn list_gives_each_kernel_with_its_parameters() {
    let output = lacewing(&["list", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let kernels: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kernels = kernels.as_array().unwrap();
    assert_eq!(kernels.len(), lacewing::kernels::ENTRIES.len());
    for (kernel, entry) in kernels.iter().zip(lacewing::kernels::ENTRIES) {
        assert_eq!(kernel["name"], entry.name);
        assert_eq!(kernel["about"], entry.about);
        assert!(kernel["targets"].as_array().unwrap().iter().all(Value::is_string));
        for parameter in kernel["parameters"].as_array().unwrap() {
            assert!(parameter["name"].is_string() && !parameter["default"].is_null(), "{parameter}");
        }
    }
    let text = stdout(&lacewing(&["list"]));
    assert!(lacewing::kernels::ENTRIES.iter().all(|entry| text.contains(entry.name)), "{text}");
}

#[test]
fn doctor_says_what_is_found() {
    let output = lacewing(&["doctor"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("emulator"));
    let findings: Value = serde_json::from_slice(&lacewing(&["doctor", "--json"]).stdout).unwrap();
    for finding in findings.as_array().unwrap() {
        assert!(finding["name"].is_string() && finding["found"].is_boolean(), "{finding}");
    }
}

#[test]
fn mistakes_on_the_command_line_exit_with_2() {
    for arguments in [
        &["frobnicate"][..],
        &["run", "no_such_kernel", "--random", "1"],
        &["compile", "no_such_kernel", "--target", "sm_80"],
        &["run"],
        &[],
    ] {
        let output = lacewing(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{arguments:?}");
    }
    assert!(stderr(&lacewing(&["run", "no_such_kernel", "--random", "1"])).contains("there is no kernel"));
    assert_eq!(lacewing(&["--help"]).status.code(), Some(0));
    assert_eq!(lacewing(&["--version"]).status.code(), Some(0));
}
