//! `lacewing list`.

use lacewing_runtime::registry::{KernelEntry, Parameter, ParameterKind, Value};
use serde_json::{Value as Json, json};

use super::failure::Failure;
use super::{Io, write_json};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write JSON: an array of {"name", "targets", "parameters", "about"}
    #[arg(long)]
    json: bool,
}

pub(crate) fn list(entries: &[&KernelEntry], arguments: &Arguments, io: &mut Io) -> Result<(), Failure> {
    if arguments.json {
        let kernels: Vec<Json> = entries.iter().map(|entry| describe(entry)).collect();
        return write_json(io, &Json::Array(kernels));
    }
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            writeln!(io.out)?;
        }
        let targets: Vec<&str> = entry.targets.iter().map(|target| target.name()).collect();
        writeln!(io.out, "{}  {}", entry.name, entry.about)?;
        writeln!(io.out, "    targets: {}", targets.join(", "))?;
        for parameter in entry.parameters {
            let choices = match parameter.kind {
                ParameterKind::Choice(choices) => choices.join(" | "),
                kind => kind.name().to_owned(),
            };
            let Parameter { name, default, about, .. } = parameter;
            writeln!(io.out, "    --set {name}={default}  ({choices})  {about}")?;
        }
    }
    Ok(())
}

fn describe(entry: &KernelEntry) -> Json {
    json!({
        "name": entry.name,
        "targets": entry.targets.iter().map(|target| target.name()).collect::<Vec<_>>(),
        "parameters": entry.parameters.iter().map(parameter).collect::<Vec<_>>(),
        "about": entry.about,
    })
}

fn parameter(parameter: &Parameter) -> Json {
    let mut object = json!({
        "name": parameter.name,
        "kind": parameter.kind.name(),
        "default": value(parameter.default),
        "about": parameter.about,
    });
    if let (ParameterKind::Choice(choices), Some(object)) = (parameter.kind, object.as_object_mut()) {
        object.insert("choices".to_owned(), json!(choices));
    }
    object
}

/// The value of a parameter as JSON.
pub(crate) fn value(value: Value) -> Json {
    match value {
        Value::Usize(x) => json!(x),
        Value::Bool(x) => json!(x),
        Value::Choice(x) => json!(x),
        Value::F32(x) => json!(x),
    }
}
