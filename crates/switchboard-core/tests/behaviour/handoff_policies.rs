//! Policies for handoffs: failures told to the model, decisions, limits, several at once.

mod announced;
mod budgets;
mod decisions;
mod edges;
mod every_step;
mod explained;
mod failures;
mod fan_out;
mod loops;
mod once;
mod pairs;
mod payload_delivery;
mod several;
mod shared_budgets;
