//! Decides which principal may see and call which tool. Pure: rules in, decision out.
