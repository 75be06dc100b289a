"""A FlowFabric worker on the standard library alone: python3 worker.py (FF_SERVER, FF_API_KEY, FF_NAMESPACE)."""
import json, os, signal, threading, time, urllib.error, urllib.parse, urllib.request, uuid

SERVER, KEY = os.environ.get("FF_SERVER", "http://127.0.0.1:7433"), os.environ.get("FF_API_KEY")
ME = {"worker_id": "python", "worker_instance_id": "python-" + uuid.uuid4().hex, "lanes": ["default"], "kinds": ["order"]}
INSTANCE = "/v1/workers/" + ME["worker_instance_id"]
draining = threading.Event()


class Refused(Exception):
    """The server refuses a request for good: status and code. Under a lease: stop, the work was cancelled or another worker has it."""


def call(method, path, body=None, fence=None, tries=8):
    """Sends one request, repeats it under one key while its outcome is unknown, and returns the answer."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": uuid.uuid4().hex, "FlowFabric-Lease": fence,
        "FlowFabric-Namespace": os.environ.get("FF_NAMESPACE"), "Authorization": KEY and "Bearer " + KEY}
    data, headers = body is not None and json.dumps(body).encode() or None, {name: v for name, v in headers.items() if v}
    for n in range(tries):
        try:
            with urllib.request.urlopen(urllib.request.Request(SERVER + path, data, headers, method=method), timeout=60) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refused:
            problem = json.loads(refused.read() or b"{}")
            if not problem.get("retryable"):
                raise Refused(refused.code, problem.get("code"), problem.get("detail")) from None
        except OSError as lost:  # also a timeout: the request may have been applied
            problem = {"detail": str(lost)}
        time.sleep(problem.get("retry_after_ms", min(100 * 2 ** min(n, 6), 5000)) / 1000)
    raise Refused(503, problem.get("code"), problem.get("detail"))


class Task:
    """One claimed execution. lost is set once its lease is lost."""

    def __init__(self, claimed):
        self.claimed, self.lost, self.done = claimed, threading.Event(), threading.Event()
        self.path, self.fence = "/v1/executions/" + claimed["execution_id"], claimed["lease"]["fence"]
        threading.Thread(target=self.renew, daemon=True).start()

    def renew(self):
        while not self.done.wait(self.claimed["lease"]["ttl_ms"] / 3000):  # before a third of the lease is over
            try:
                call("POST", self.path + "/renew", {}, self.fence, tries=1)
            except Refused as why:
                if why.args[0] < 500:  # cancelled, revoked, or taken over
                    return self.lost.set()

    def step(self, name, do):
        """Runs do once: a later attempt gets the stored result. The effect key makes effects elsewhere happen once."""
        if stored := [step for step in call("GET", self.path + "/steps?inline=true")["items"] if step["name"] == name]:
            return stored[0].get("result")
        return call("PUT", f"{self.path}/steps/{urllib.parse.quote(name)}", {"result": do()}, self.fence)["result"]


def handle(task):
    """The work itself; returns how it ends. It runs from its start again after a wait: steps then return what is stored."""
    order, resumed = task.claimed["input"], task.claimed.get("resumed")
    receipt = task.step("charge", lambda: {"paid": order["amount"], "key": task.claimed["effect_key"]})
    if order.get("ask") and not resumed:  # give the work back until a callback arrives
        return "suspend", {"reason_code": "waiting_for_callback", "timeout_ms": 3600_000,
            "waitpoints": [{"fresh": {"waitpoint_key": "shipped"}}], "resume_condition": {"type": "single", "waitpoint_key": "shipped"}}
    for _ in range(order.get("seconds", 0) * 10):  # long work looks whether it is still wanted
        if task.lost.wait(0.1):
            raise Refused(409, "lost")
    if order.get("bad"):
        return "fail", {"category": "bad_order", "class": "permanent", "message": "the order is bad"}
    return "complete", {"result": {**receipt, "signals": len(resumed["signals"]) if resumed else 0}}


def run(task):
    try:
        try:
            verb, body = handle(task)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, OSError) as error:  # its policy decides
            verb, body = "fail", {"category": type(error).__name__.lower(), "message": str(error)}
        call("POST", f"{task.path}/{verb}", body, task.fence)
        print(task.claimed["execution_id"], verb, flush=True)
    except Refused as why:
        print(task.claimed["execution_id"], "given up:", *why.args, flush=True)
    task.done.set()


def heartbeat():
    while not time.sleep(1):
        answer = call("POST", INSTANCE + "/heartbeat", {}, tries=60)
        if answer.get("drain"):
            draining.set()
        elif not answer.get("registered"):
            call("POST", "/v1/workers", ME)


signal.signal(signal.SIGTERM, lambda *_: draining.set())
call("POST", "/v1/workers", ME)
threading.Thread(target=heartbeat, daemon=True).start()
while not draining.is_set():
    for claimed in call("POST", "/v1/work/claim", {**ME, "max": 1, "wait_ms": 2000}, tries=60)["tasks"]:
        run(Task(claimed))
call("POST", INSTANCE + "/dead", {"reason": "stopped", "take_leases": False})
print("drained", flush=True)
