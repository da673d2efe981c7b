//! Typed parameters: what a notebook may be given, checked before anything is queued.

use std::{collections::BTreeMap, fmt};

use blueproof_diagnostic::{
    Code, Diagnostic,
    yaml::{Decode, Located, Problems, Spot, Value, YamlNode, choice, nearest, record},
};
use serde_json::json;

use crate::{analysis::untyped_parameter, ipynb::Notebook};

choice! {
    /// What a parameter's values are.
    pub enum ParameterType {
        /// A whole number.
        Int = "int",
        /// A number.
        Float = "float",
        /// Text.
        String = "string",
        /// True or false.
        Bool = "bool",
    }
}

record! {
    /// A value that may be changed from run to run, put into the notebook after its cell tagged `parameters`.
    pub struct Parameter {
        /// What its values are: int, float, string or bool.
        r#type: ParameterType,
        /// The value when none is given. Default: the notebook's own, untouched.
        default: Option<Located<ParameterValue>>,
        /// The least value, for numbers. Default: none.
        min: Option<f64>,
        /// The greatest value, for numbers. Default: none.
        max: Option<f64>,
        /// The only values that are allowed. Default: any.
        choices: Vec<ParameterValue>,
        /// What it is for, for people.
        description: Option<String>,
    }
}

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterValue {
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text.
    Text(String),
    /// True or false.
    Bool(bool),
}

impl ParameterValue {
    /// Returns the value as JSON, for the injected cell.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            ParameterValue::Int(value) => json!(value),
            ParameterValue::Float(value) => json!(value),
            ParameterValue::Text(value) => json!(value),
            ParameterValue::Bool(value) => json!(value),
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "bounds beyond 2^53 are not told apart by anyone"
    )]
    fn number(&self) -> Option<f64> {
        match self {
            ParameterValue::Int(value) => Some(*value as f64),
            ParameterValue::Float(value) => Some(*value),
            ParameterValue::Text(_) | ParameterValue::Bool(_) => None,
        }
    }
}

impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterValue::Int(value) => write!(f, "{value}"),
            ParameterValue::Float(value) => write!(f, "{value}"),
            ParameterValue::Text(value) => write!(f, "{value}"),
            ParameterValue::Bool(value) => write!(f, "{value}"),
        }
    }
}

impl Decode for ParameterValue {
    fn decode(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Self> {
        match &node.value {
            Value::Int(value) => Some(Self::Int(*value)),
            Value::Float(value) => Some(Self::Float(*value)),
            Value::Text(value) => Some(Self::Text(value.clone())),
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Null | Value::List(_) | Value::Map(_) => {
                problems.wrong_type(node, "a number, text, or true or false");
                None
            }
        }
    }

    fn schema() -> serde_json::Value {
        json!({ "type": ["number", "string", "boolean"] })
    }
}

impl Parameter {
    /// Returns `value` as this parameter's type has it, or why it does not take it.
    fn accept(&self, value: &ParameterValue) -> Result<ParameterValue, String> {
        let value = self.typed(value)?;
        if let Some(number) = value.number() {
            if let Some(min) = self.min.filter(|min| number < *min) {
                return Err(format!("{value} is less than its least value, {min}"));
            }
            if let Some(max) = self.max.filter(|max| number > *max) {
                return Err(format!("{value} is more than its greatest value, {max}"));
            }
        }
        let same = |choice: &ParameterValue| self.typed(choice).as_ref() == Ok(&value);
        if !self.choices.is_empty() && !self.choices.iter().any(same) {
            let choices: Vec<String> = self.choices.iter().map(ParameterValue::to_string).collect();
            return Err(format!("`{value}` is not one of {}", choices.join(", ")));
        }
        Ok(value)
    }

    fn typed(&self, value: &ParameterValue) -> Result<ParameterValue, String> {
        use ParameterValue::{Bool, Float, Int, Text};
        let wrong = |expected: &str| Err(format!("it takes {expected}, not `{value}`"));
        match (self.r#type, value) {
            (ParameterType::Int, Int(_))
            | (ParameterType::String, Text(_))
            | (ParameterType::Bool, Bool(_)) => Ok(value.clone()),
            (ParameterType::Float, Int(_) | Float(_)) => match value.number() {
                Some(number) if number.is_finite() => Ok(Float(number)),
                Some(_) | None => wrong("a finite number"),
            },
            (ParameterType::Int, Text(text)) if is_whole(text) => {
                wrong(&format!("a whole number from {} to {}", i64::MIN, i64::MAX))
            }
            (ParameterType::Int, Float(_) | Text(_) | Bool(_)) => wrong("a whole number"),
            (ParameterType::Float, Text(_) | Bool(_)) => wrong("a number"),
            (ParameterType::String, Int(_) | Float(_) | Bool(_)) => wrong("text (use quotes)"),
            (ParameterType::Bool, Int(_) | Float(_) | Text(_)) => wrong("true or false"),
        }
    }

    /// Reads a value from the command line, where everything is text.
    fn read(&self, text: &str) -> ParameterValue {
        let typed = match self.r#type {
            ParameterType::Int => text.parse().ok().map(ParameterValue::Int),
            ParameterType::Float => text.parse().ok().map(ParameterValue::Float),
            ParameterType::Bool => match text {
                "true" | "True" => Some(ParameterValue::Bool(true)),
                "false" | "False" => Some(ParameterValue::Bool(false)),
                _ => None,
            },
            ParameterType::String => None,
        };
        typed.unwrap_or_else(|| ParameterValue::Text(text.into()))
    }
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Declared parameters, and the values that they have been given so far.
pub(crate) struct Values<'p> {
    declared: &'p BTreeMap<String, Located<Parameter>>,
    given: BTreeMap<String, ParameterValue>,
}

impl<'p> Values<'p> {
    /// Begins with the defaults.
    pub(crate) fn defaults(
        declared: &'p BTreeMap<String, Located<Parameter>>,
        problems: &mut Problems<'_>,
    ) -> Self {
        let mut values = Self {
            declared,
            given: BTreeMap::new(),
        };
        for (name, parameter) in declared {
            check_declaration(name, parameter, problems);
            if let Some(default) = &parameter.value.default {
                values.give(name, &default.value, default.spot, problems);
            }
        }
        values
    }

    /// Gives the values of a profile.
    pub(crate) fn give_profile(
        &mut self,
        profile: &BTreeMap<String, Located<ParameterValue>>,
        problems: &mut Problems<'_>,
    ) {
        for (name, value) in profile {
            self.give(name, &value.value, value.spot, problems);
        }
    }

    /// Gives the values of a command line.
    pub(crate) fn give_texts(
        &mut self,
        texts: &[(String, String)],
        notebook: &Notebook,
        problems: &mut Problems<'_>,
    ) {
        for (name, text) in texts {
            let Some(parameter) = self.declared.get(name) else {
                let unknown = untyped_parameter(notebook, name).map_or_else(
                    || unknown_parameter(name, self.declared),
                    |kind| without_type(name, kind),
                );
                problems.report(Spot::default(), unknown);
                continue;
            };
            self.give(name, &parameter.value.read(text), Spot::default(), problems);
        }
    }

    /// Returns the value of the parameter that a template names, or reports why there is none.
    pub(crate) fn look_up(
        &self,
        name: &Located<String>,
        problems: &mut Problems<'_>,
    ) -> Option<&ParameterValue> {
        if let Some(value) = self.given.get(&name.value) {
            return Some(value);
        }
        let template = format!("`{{{{{}}}}}`", name.value);
        match self.declared.get(&name.value) {
            // Its default is there and was refused: that is already reported.
            Some(Located { value, .. }) if value.default.is_some() => {}
            Some(_) => problems.report(
                name.spot,
                Diagnostic::error(Code::ParameterValue, format!("{template} has no value"))
                    .hint(format!("give `spec.parameters.{}` a default", name.value)),
            ),
            None => {
                let unknown = format!("{template} is no parameter of this blueprint");
                let unknown = Diagnostic::error(Code::UnknownParameter, unknown);
                let hint = match nearest(&name.value, self.declared.keys().map(String::as_str)) {
                    Some(meant) => format!("did you mean `{{{{{meant}}}}}`?"),
                    None => format!("declare `{}` under `spec.parameters`", name.value),
                };
                problems.report(name.spot, unknown.hint(hint));
            }
        }
        None
    }

    pub(crate) fn into_map(self) -> BTreeMap<String, ParameterValue> {
        self.given
    }

    fn give(&mut self, name: &str, value: &ParameterValue, spot: Spot, problems: &mut Problems<'_>) {
        let Some(parameter) = self.declared.get(name) else {
            problems.report(spot, unknown_parameter(name, self.declared));
            return;
        };
        match parameter.value.accept(value) {
            Ok(value) => {
                self.given.insert(name.to_owned(), value);
            }
            Err(why) => {
                let message = format!("the parameter `{name}` does not take this value: {why}");
                // What stands in no file was read off the notebook: there is no blueprint.
                let hint = match parameter.spot == Spot::default() {
                    true => "its type is that of the value in the cell tagged `parameters`; a blueprint.yaml can declare another".to_owned(),
                    false => format!("its declaration stands under `spec.parameters.{name}`"),
                };
                problems.report(spot, Diagnostic::error(Code::ParameterValue, message).hint(hint));
            }
        }
    }
}

/// Words that Python takes for its own: `keyword.kwlist` of Python 3.14.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

fn check_declaration(name: &str, parameter: &Located<Parameter>, problems: &mut Problems<'_>) {
    let head = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let is_word = head && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let hint = match (is_word, KEYWORDS.contains(&name)) {
        (true, false) => None,
        (true, true) => Some("it is a keyword of Python: use another word"),
        (false, _) => Some("use letters, digits and `_`, not beginning with a digit"),
    };
    if let Some(hint) = hint {
        let message = format!("`{name}` cannot be the name of a variable in the notebook");
        problems.bad_value(parameter.spot, message, hint);
    }
    let Parameter { min, max, .. } = parameter.value;
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        let message = format!("`{name}` takes no value at all: its min {min} is greater than its max {max}");
        problems.bad_value(parameter.spot, message, "exchange `min` and `max`");
    }
    let numeric = matches!(parameter.value.r#type, ParameterType::Int | ParameterType::Float);
    if !numeric && (min.is_some() || max.is_some()) {
        let message = format!("`{name}` is no number and can have no min and max");
        problems.bad_value(parameter.spot, message, "use `choices`");
    }
    for choice in &parameter.value.choices {
        if let Err(why) = parameter.value.typed(choice) {
            problems.bad_value(
                parameter.spot,
                format!("a choice of `{name}` is of another type: {why}"),
                "mend it",
            );
        }
    }
}

/// Reports a name that the cell tagged `parameters` assigns, and of which it cannot be told what values it takes.
fn without_type(name: &str, kind: &str) -> Diagnostic {
    let message = format!("unknown parameter `{name}`: it has no type that can be read");
    Diagnostic::error(Code::UnknownParameter, message)
        .because(format!("what the cell tagged `parameters` gives it is {kind}"))
        .hint(format!(
            "declare it in a blueprint.yaml, such as `spec: {{parameters: {{{name}: {{type: string}}}}}}`, or write a number, a text, True or False into the cell"
        ))
}

fn unknown_parameter(name: &str, declared: &BTreeMap<String, Located<Parameter>>) -> Diagnostic {
    let unknown = Diagnostic::error(Code::UnknownParameter, format!("unknown parameter `{name}`"));
    let known: Vec<&str> = declared.keys().map(String::as_str).collect();
    if let Some(meant) = nearest(name, known.iter().copied()) {
        return unknown.hint(format!("did you mean `{meant}`?"));
    }
    if known.is_empty() {
        return unknown.hint("there are no parameters; declare them under `spec.parameters`, or, where there is no blueprint, tag the cell that assigns them `parameters`");
    }
    unknown.hint(format!("its parameters: {}", known.join(", ")))
}
