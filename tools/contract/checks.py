"""Checks of schemathesis that this API meets with exceptions. Each exception has its reason."""

import re

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.specs.openapi.checks import RejectedPositiveData, ignored_auth, negative_data_rejection, positive_data_acceptance

# Refusals of requests that the document allows. One is an exception when an expression is found in "code field: detail".
ALLOWED = {
    "fields depend on each other, which generators of clients do not understand in a schema": (
        r"is given too$|give exactly one of|goes with a body that is not JSON|when the body is the input itself|say for how long"
        r"|the lease says already|differs from|of its own$|nothing to check|a binding is fresh or use_pending|this action needs|action has no|is missing$|^fence_required|^partial_fence"
    ),
    "which fields there are depends on op, type or policy": (
        r"has no such field|required with op|say what is counted|with policy quorum|is for policy|goes in intervals|this scope has no value"
    ),
    "a rule about the whole object, with a code of its own": (
        r"^invalid_(flow|join|budget|condition|capabilities|policy|usage|edge|suspension|waitpoint|link|resume_condition) "
    ),
    "texts that only the server makes": r"^invalid_cursor|^grant_malformed|^invalid_secret_hex|^invalid_token",
    "JSON Schema takes 1.0 for an integer": r"found a fraction or an exponent",
    "whole numbers have their bounds in the text where clients need not know them": r"must be in -?\d+\.\.\d+|want \d+\.\.\d+|must be at least|is at least",
    "instants are those that the stores can keep": r"outside the years 1970 to 9999|years ahead|in the past|must be in the future",
    "generators take contentEncoding for a note": r"not standard base64",
    "lengths are counted in bytes": r"is too long: at most \d+ bytes|bytes are allowed",
    "words that will grow in number": r'" is (no|not a|not an) |is reserved|is not a tag key|cannot be included|must be one of',
    "something that is not there": r": no \w+ ",
    "lists have their bounds in the text": r"more than \d+ (entries|values|elements|dimensions)|at most \d+ are allowed|must not be empty|the list is empty",
}

# A body of type application/json is the object, though these operations take other types as they are: what is drawn for those is sent so too.
ALLOWED_RAW = r"expected an object, found|this field is (required|not known)$"


@schemathesis.check
def valid_requests_are_taken(ctx, response, case):
    """positive_data_acceptance, but for the refusals above."""
    try:
        return positive_data_acceptance(ctx, response, case)
    except RejectedPositiveData:
        problem = response.json()
        if all(is_allowed(case, problem, fault) for fault in problem.get("errors") or [problem]):
            return None
        raise


def is_allowed(case, problem, fault):
    text = f'{fault.get("code", problem["code"])} {fault.get("field", "")}: {fault.get("detail", "")}'
    if takes_raw_bodies(case) and re.search(ALLOWED_RAW, text):
        return True
    return any(re.search(expression, text) for expression in ALLOWED.values())


def takes_raw_bodies(case):
    return any(body.media_type != "application/json" for body in case.operation.body)


@schemathesis.check
def invalid_requests_are_refused(ctx, response, case):
    """negative_data_rejection, but for null, which is the same as an absent field."""
    try:
        return negative_data_rejection(ctx, response, case)
    except AcceptedNegativeData:
        if has_null(case.body):
            return None
        raise


@schemathesis.check
def keys_are_asked_for(ctx, response, case):
    """ignored_auth, but for 429: wrong keys are answered so when there are more than 20 in a minute, and they are refused all the same."""
    try:
        return ignored_auth(ctx, response, case)
    except Failure as failure:
        if "got `429 " in failure.message:
            return None
        raise


def has_null(value):
    if isinstance(value, dict):
        value = list(value.values())
    return value is None or isinstance(value, list) and any(has_null(each) for each in value)
