//! The causes of errors, where servers name them by a message, or each by a code of its own.

/// Codes of a quota that is used up.
const SPENT_CODES: [&str; 12] = [
    "account_deactivated_for_billing",
    "allocationquota.freetieronly",
    "arrearage",
    "billing_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "credit_balance_exhausted",
    "exceeded_current_quota_error",
    "insufficient_balance",
    "insufficient_credits",
    "insufficient_quota",
    "insufficient_user_quota",
];

/// Parts of messages, in lower case, that say that a quota is used up.
const SPENT_MESSAGES: [&str; 17] = [
    "allocated free quota",
    "balance is insufficient",
    "balance is not enough",
    "balance is too low",
    "billing hard limit",
    "exceeded your current quota",
    "exceeded your monthly included credits",
    "free tier of the model has been exhausted",
    "insufficient account balance",
    "insufficient balance",
    "insufficient credit",
    "insufficient funds",
    "insufficient quota",
    "requires more credits",
    "used all available credits",
    "余额不足",
    "欠费",
];

/// First sentences of messages, in lower case, that say so with the status 400. Other messages with this status quote the
/// request, in which anything may stand.
const SPENT_SENTENCES: [&str; 9] = [
    "access denied, please make sure your account is in good standing",
    "billing hard limit has been reached",
    "insufficient account balance",
    "insufficient balance",
    "insufficient quota",
    "you have reached your specified api usage limits",
    "your credit balance is too low to access the anthropic api",
    "your credit balance is too low to access the api",
    "your credit balance is too low to access the claude api",
];

/// Parts of messages, in lower case, of a limit that is lifted soon.
const SOON: [&str; 4] = ["retry in ", "try again in ", "retry after ", "per minute"];

/// Codes of a conversation that is too long for the model.
const TOO_LONG_CODES: [&str; 4] = [
    "context_length_exceeded",
    "context_window_exceeded",
    "exceed_context_size_error",
    "request_too_large",
];

/// Parts of messages, in lower case, that say that a conversation is too long.
const TOO_LONG_MESSAGES: [&str; 11] = [
    "context length exceeded",
    "context size has been exceeded",
    "exceeds the available context size",
    "exceeds the context window",
    "exceeds the maximum number of tokens",
    "exceeds the model's maximum context",
    "input is too long",
    "input token count exceeds",
    "maximum context length",
    "prompt is too long",
    "range of input length should be",
];

/// Messages, in lower case, of a server that does not know the path of a request.
const UNKNOWN_PATHS: [&str; 6] = [
    "404 page not found",
    "404 not found",
    "method not allowed",
    "no route matched with those values",
    "not found",
    "resource not found",
];

/// Beginnings of such messages.
const UNKNOWN_PATH_STARTS: [&str; 6] = [
    "cannot post ",
    "invalid url (",
    "no route",
    "unexpected endpoint or method",
    "unknown request url",
    "unrecognized request url",
];

/// The status that a code is, where an answer of status 200 reports an error with that of another server.
pub(crate) fn status_of_code(code: Option<&str>) -> Option<u16> {
    let status = code?.parse().ok()?;
    (400..600).contains(&status).then_some(status)
}

/// Returns `true` if the account's quota is used up, so that waiting does not help. Without a status, the error was
/// reported within an answer, and its code may be one.
pub(crate) fn is_spent_quota(status: Option<u16>, code: Option<&str>, message: &str) -> bool {
    let status = status.or_else(|| status_of_code(code));
    if status == Some(402) || has_code(code, &SPENT_CODES) {
        return true;
    }
    let message = message.to_lowercase();
    match status {
        // A server that has failed quotes whatever it was doing.
        None | Some(403 | 429) => {
            contains_any(&message, &SPENT_MESSAGES) && !contains_any(&message, &SOON)
        }
        Some(400) => {
            let sentence = message.trim().split(". ").next().unwrap_or_default();
            SPENT_SENTENCES.contains(&sentence.trim_end_matches('.'))
        }
        Some(_) => false,
    }
}

/// Returns `true` if the conversation is too long for the model, or the request for the server.
pub(crate) fn is_too_long(status: Option<u16>, code: Option<&str>, message: &str) -> bool {
    let is_request = matches!(status, None | Some(400..500));
    status == Some(413)
        || has_code(code, &TOO_LONG_CODES)
        || is_request && contains_any(&message.to_lowercase(), &TOO_LONG_MESSAGES)
}

/// Returns `true` if a 404 or a 405 is due to the path, and not to a model or a conversation that the
/// server does not have. `message` is that of a JSON body, or else the whole body.
pub(crate) fn is_unknown_path(status: u16, message: &str, is_json: bool) -> bool {
    let message = message.trim().to_lowercase();
    let message = message.trim_end_matches('.');
    if !matches!(status, 404 | 405) {
        return false;
    }
    // A text that is no JSON is not of the server's models, unless it says so.
    (!is_json && !message.contains("model"))
        || UNKNOWN_PATHS.contains(&message)
        || UNKNOWN_PATH_STARTS
            .iter()
            .any(|start| message.starts_with(start))
}

fn has_code(code: Option<&str>, codes: &[&str]) -> bool {
    code.is_some_and(|code| codes.contains(&&*code.to_ascii_lowercase()))
}

fn contains_any(message: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| message.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_lifted_soon_is_not_a_spent_quota() {
        for (message, is_spent) in [
            (
                "You exceeded your current quota, please check your plan.",
                true,
            ),
            (
                "You exceeded your current quota. Please retry in 34.07s.",
                false,
            ),
            ("Rate limit reached for requests per minute", false),
            (
                "Allocated quota exceeded, please increase your quota limit.",
                false,
            ),
        ] {
            let found = is_spent_quota(Some(429), Some("429"), message);
            assert_eq!(found, is_spent, "{message}");
        }
        let coded = is_spent_quota(Some(429), Some("insufficient_quota"), "Try again in 1 s");
        assert!(coded);
    }

    #[test]
    fn a_message_that_quotes_words_of_a_spent_quota_is_none() {
        for (status, message, is_spent) in [
            (
                400,
                "Your credit balance is too low to access the Anthropic API. Please upgrade.",
                true,
            ),
            (
                400,
                "You have reached your specified API usage limits. You will regain access on 2030-01-01 at 00:00 UTC.",
                true,
            ),
            (400, "Insufficient Balance", true),
            (400, "Invalid input: \"insufficient balance\"", false),
            (
                400,
                "messages[2]: Your credit balance is too low to access the API.",
                false,
            ),
            (403, "Sorry, your account balance is insufficient", true),
            (404, "insufficient balance", false),
            (500, "insufficient balance", false),
            (529, "余额不足", false),
        ] {
            let found = is_spent_quota(Some(status), None, message);
            assert_eq!(found, is_spent, "{status}: {message}");
        }
    }

    #[test]
    fn a_model_that_is_not_there_is_not_a_wrong_path() {
        for (message, is_json, is_path) in [
            ("404 page not found\n", false, true),
            ("", false, true),
            ("model 'x' not found", false, false),
            ("The model `x` does not exist", true, false),
            ("Not Found", true, true),
            ("Invalid URL (POST /chat/completions)", true, true),
            ("Response not found", true, false),
            ("Resource not found", true, true),
        ] {
            assert_eq!(is_unknown_path(404, message, is_json), is_path, "{message}");
        }
        assert!(!is_unknown_path(400, "Not Found", true));
    }
}
