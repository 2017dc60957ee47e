//! Columns of numbers with gaps.

use std::borrow::Cow;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Numbers of a data column. NaN and infinity mean "no value here" and are written as `null`, so that a broken curve
/// survives JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column(pub Vec<f64>);

impl Deref for Column {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        &self.0
    }
}

impl<T: Into<Vec<f64>>> From<T> for Column {
    fn from(values: T) -> Self {
        Self(values.into())
    }
}

impl FromIterator<f64> for Column {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|&value| value.is_finite().then_some(value)))
    }
}

impl<'de> Deserialize<'de> for Column {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = Vec::<Option<f64>>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
    }
}

impl JsonSchema for Column {
    fn schema_name() -> Cow<'static, str> {
        "Column".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<Option<f64>>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_survive_json() {
        let column = Column(vec![1.0, f64::NAN, f64::INFINITY, -2.5]);
        let text = serde_json::to_string(&column).unwrap();
        assert_eq!(text, "[1.0,null,null,-2.5]");
        let back: Column = serde_json::from_str(&text).unwrap();
        assert!(back[0] == 1.0 && back[1].is_nan() && back[2].is_nan() && back[3] == -2.5);
    }
}
