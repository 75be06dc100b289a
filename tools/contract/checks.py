"""Checks of schemathesis that this API meets with exceptions. Each exception names the operations and fields that it is about, and its reason."""

import re
from dataclasses import dataclass

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData, Failure
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import RejectedPositiveData, ignored_auth, negative_data_rejection, positive_data_acceptance


@dataclass
class Refusal:
    """A refusal of requests that the document allows. All but why are regular expressions over the whole text."""

    why: str
    operations: str
    code: str
    field: str
    detail: str

    def explains(self, operation, code, field, detail):
        given = ((self.operations, operation), (self.code, code), (self.field, field), (self.detail, detail))
        return all(re.fullmatch(expression, text, re.DOTALL) for expression, text in given)


ANY = ".*"
BAD = "invalid_argument"
FENCED = (
    "cancel_execution|complete_execution|delay_execution|fail_execution|report_progress|release_execution|renew_lease|spawn_children|put_step"
    "|suspend_execution|report_usage|wait_for_children|create_waitpoint|revoke_link|close_waitpoint|create_link"
)
SUBMITS = "submit_execution|submit_executions|submit_flow|spawn_children|extend_flow|send_work"
GRAPHS = "submit_flow|spawn_children|extend_flow|send_work"
SUSPENDS = "suspend_execution|send_work"
CONDITION = r"(/items/\d+)?/resume_condition(/members/\d+)*"

DEPENDS = "whether a field may or must be there depends on another, which generators of clients do not understand in a schema"
GRAPH = "a rule about a whole graph: names, edges, cycles, joins"
ISSUED = "a text that only the server issues: its form is right, and the server has not issued it"
RESERVED = "the prefix is reserved, which a pattern cannot say in all dialects"
STORED = "instants are those that the stores can keep, or near enough to the present"

REFUSALS = [
    Refusal(DEPENDS, "start_bulk", BAD, "/filter", "give exactly one of a filter that is not empty, ids, or all"),
    Refusal(DEPENDS, "start_bulk", "missing_field", "/args/(priority|name)", "this action needs .*"),
    Refusal(DEPENDS, "start_bulk", f"unknown_field|{BAD}", "/(args|lift)(/.*)?", ".*action has no .*"),
    Refusal(DEPENDS, "submit_execution", "unknown_field", r"query\..*", "this query parameter is only for bodies that are not JSON"),
    Refusal(DEPENDS, "submit_execution", "missing_field", r"query\.kind", "required when the body is the input itself"),
    Refusal(DEPENDS, "complete_execution|fail_execution", "unknown_field", "/reason", "this field goes with override"),
    Refusal(DEPENDS, "complete_execution|fail_execution", BAD, r"header\.FlowFabric-Lease", "override is given too"),
    Refusal(DEPENDS, FENCED, BAD, "/expect", "the lease says already what is expected"),
    Refusal(DEPENDS, FENCED, BAD, r"header\.FlowFabric-Lease", "the lease of the header differs from that of the body"),
    Refusal(DEPENDS, FENCED, "invalid_handle", "/lease", "the fence of the lease differs from its parts"),
    Refusal(DEPENDS, "heartbeat_worker", "invalid_handle", r"/leases/\d+", "the fence of the lease differs from its parts"),
    Refusal(DEPENDS, "send_work", "invalid_handle", r"/items/\d+/lease", "the fence of the lease differs from its parts"),
    Refusal(DEPENDS, FENCED, "fence_required", "", ANY),
    Refusal(DEPENDS, FENCED, "partial_fence", "(/lease)?/(lease_id|lease_epoch|attempt_id)", r"\w+ is missing"),
    Refusal(DEPENDS, "delay_execution", "missing_field", "/until", "say for how long"),
    Refusal(DEPENDS, SUSPENDS, "missing_field", r"(/items/\d+)?/waitpoints/\d+/fresh", "a binding is fresh or use_pending"),
    Refusal(DEPENDS, SUSPENDS, "unknown_field", CONDITION + r"/\w+", r"\w+ has no such field"),
    Refusal(DEPENDS, SUSPENDS, BAD, CONDITION + "/count_kind", "count_kind is required"),
    Refusal(DEPENDS, "send_work", "missing_field", r"/items/\d+/\w+", r"this field is required with op \w+"),
    Refusal(DEPENDS, "send_work", "unknown_field", r"/items/\d+/\w+", r"op \w+ has no such field"),
    Refusal(DEPENDS, "submit_flow", BAD, "/dry_run", "there is nothing to check in an empty flow"),
    Refusal(DEPENDS, "set_join|wait_for_children", "invalid_join", "/k", "must be at least 1 with policy quorum|is for policy quorum"),
    Refusal(DEPENDS, "grant_work", BAD, "/lanes", r"0 lanes, want 1\.\.64"),
    Refusal(DEPENDS, "create_budget|update_budget", "invalid_budget", "/reset", "a reset is either an interval or a calendar unit"),
    Refusal(DEPENDS, "create_budget|update_budget", "invalid_budget", "/reset/every_ms", r"must be in 60000\.\.\d+"),
    Refusal(DEPENDS, "create_budget|update_budget", "invalid_budget", "/reset/unit", ".* is not a unit"),
    Refusal(DEPENDS, "create_budget", "invalid_budget", "/scope/value", ANY),
    Refusal(DEPENDS, "update_budget", "invalid_budget", r"/dimensions/\w+/remove", r"\w+ is set and taken away"),
    Refusal(DEPENDS, "create_budget", "invalid_budget", r"/dimensions/\w+/(soft|default_reserve)", r"must be in [01]\.\.\d+"),
    Refusal(DEPENDS, "create_budget", "invalid_budget", r"/approval(/.*)?", "there is no such dimension with a hard limit"),
    Refusal("names of time zones are those of a database", "create_budget|update_budget", "invalid_budget", "/reset/timezone", ".* is not a time zone"),
    Refusal("If-Match is compared with the stored revision, which other requests change", ANY, "precondition_failed", r"header\.If-Match", r"the revision is \d+, not \d+"),
    Refusal("ids within a list differ, which a schema can only say of whole items", "create_link", BAD, r"/decisions/\d+/id", "is the id of another"),
    Refusal("0 is the same as an absent field", "put_quota", BAD, "/window_ms", r"must be in 1000\.\.86400000"),
    Refusal(GRAPH, GRAPHS, "invalid_flow|unknown_name|invalid_edge|invalid_join|duplicate_name|self_edge|cycle_detected", ANY, ANY),
    Refusal("a rule about a whole condition", SUSPENDS, "invalid_suspend", ANY, ANY),
    Refusal("a policy is an object of its own, with a schema of its own", SUBMITS + "|put_lane|fail_execution", "invalid_policy", ".*/?(policy|quotas|budgets|budget_ids|requires|estimate)(/.*)?", ANY),
    Refusal(
        "a capability is checked as a whole list",
        SUBMITS + "|claim_work|grant_work|claim_execution|claim_resumed|register_worker|reclaim_execution|revoke_lease", "invalid_capabilities", ".*(capabilities|requires)(/.*)?", ANY,
    ),
    Refusal(ISSUED, ANY, "invalid_cursor", r"query\.(cursor|after|last_event_id)|header\.Last-Event-ID", ANY),
    Refusal(ISSUED, FENCED, "invalid_handle", "", "this store has not given out the lease"),
    Refusal(ISSUED, "claim_grant|return_grant|verify_grant", "grant_malformed", "/grant_key", ANY),
    Refusal(ISSUED, "send_signal|deliver_callback|open_link|decide_link", "invalid_token", ANY, ANY),
    Refusal("bytes of a secret that are all equal are a mistake", "rotate_signing_key|seed_signing_key", "invalid_secret_hex", "/secret_hex", ANY),
    Refusal("JSON Schema takes 1.0 for an integer", ANY, BAD, ANY, "expected a whole number, found a fraction or an exponent"),
    Refusal("generators take contentEncoding for a note", ANY, BAD, r".*/\w+_bytes", "this is not standard base64"),
    Refusal(STORED, ANY, BAD, r".*[/._](at|until|from|to|since|before)", "the instant is outside the years 1970 to 9999|must be at most ten years ahead|has passed already"),
    Refusal(RESERVED, SUBMITS + "|start_bulk", "invalid_tag_key", r"(.*/tags/|query\.tag\.)ff\..*", "the prefix ff. is reserved"),
    Refusal(RESERVED, "patch_tags|patch_flow_tags|put_flow_tags", "invalid_tag_key", r"/ff\..*", "the prefix ff. is reserved"),
]

# A body of type application/json is the object, though these operations take other types as they are: what is drawn for those is sent so too.
RAW_BODIES = "decide_link|deliver_callback|submit_execution|submit_executions|complete_execution|put_step"
RAW = r"expected an object, found .*|this field is (required|not known)"


@schemathesis.check
def valid_requests_are_taken(ctx, response, case):
    """positive_data_acceptance, but for the refusals above."""
    try:
        return positive_data_acceptance(ctx, response, case)
    except RejectedPositiveData:
        problem = response.json()
        if all(is_explained(case, problem, fault) for fault in problem.get("errors") or [problem]):
            return None
        raise


def is_explained(case, problem, fault):
    operation = case.operation.definition.raw["operationId"]
    code, field, detail = fault.get("code", problem["code"]), fault.get("field", ""), fault.get("detail", "")
    if re.fullmatch(RAW_BODIES, operation) and re.fullmatch(RAW, detail):
        return True
    if has_alternative(case.body, field, detail) or is_long_in_bytes(case.body, field, detail):
        return True
    return any(refusal.explains(operation, code, field, detail) for refusal in REFUSALS)


def has_alternative(body, field, detail):
    """Tells whether the field and the one that the detail names are both in the body: of some fields only one may be there."""
    found = re.fullmatch(r"(\w+) is given too", detail)
    beside = value_at(body, field.rpartition("/")[0])
    return bool(found) and isinstance(beside, dict) and {found[1], field.rpartition("/")[2]} <= beside.keys()


def is_long_in_bytes(body, field, detail):
    """Tells whether a text is too long in bytes alone: maxLength counts characters."""
    found = re.search(r"is too long: at most (\d+) bytes are allowed", detail)
    value = value_at(body, field)
    return bool(found) and isinstance(value, str) and len(value) <= int(found[1]) < len(value.encode("utf-8", "surrogatepass"))


def value_at(body, pointer):
    """The value at a JSON pointer; None: there is none."""
    for name in pointer.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(body, list) and name.isdigit() and int(name) < len(body):
            body = body[int(name)]
        elif isinstance(body, dict):
            body = body.get(name)
        else:
            return None
    return body


@schemathesis.check
def invalid_requests_are_refused(ctx, response, case):
    """negative_data_rejection, but for null, which is the same as an absent field."""
    try:
        return negative_data_rejection(ctx, response, case)
    except AcceptedNegativeData:
        if is_valid_without_nulls(case):
            return None
        raise


def is_valid_without_nulls(case):
    """Tells whether the body alone is against the document, and is not when fields that are null are left out."""
    elsewhere = (ParameterLocation.QUERY, ParameterLocation.PATH, ParameterLocation.HEADER, ParameterLocation.COOKIE)
    if any(case.meta.is_negative_at(location) for location in elsewhere):
        return False
    body = without_nulls(case.body)
    return any(
        not each.is_required if body is None else each.get_validator().is_valid(body)
        for each in case.operation.body
        if each.media_type == case.media_type
    )


def without_nulls(value):
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [without_nulls(each) for each in value]
    return value


@schemathesis.check
def keys_are_asked_for(ctx, response, case):
    """ignored_auth, but for 429: wrong keys are answered so when there are more than 20 in a minute, and they are refused all the same."""
    try:
        return ignored_auth(ctx, response, case)
    except Failure as failure:
        if "got `429 " in failure.message:
            return None
        raise
