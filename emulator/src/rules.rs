//! Pure rules: functions of values that return values. No IO, no clock.

pub mod lease;
