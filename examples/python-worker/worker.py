#!/usr/bin/env python3
"""A FlowFabric worker on the standard library alone: python3 worker.py (FF_SERVER, FF_API_KEY, FF_NAMESPACE)."""
import json, os, signal, sys, threading, time, urllib.error, urllib.parse, urllib.request, uuid

SERVER = os.environ.get("FF_SERVER", "http://127.0.0.1:7433")
ME = {"worker_id": "python", "worker_instance_id": "python-" + uuid.uuid4().hex}
LANES, KINDS = ["default"], ["order"]
draining = threading.Event()


def call(method, path, body=None, fence=None, tries=8):
    """Sends one request, and repeats it under one key while its outcome is unknown. Returns status and answer."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": uuid.uuid4().hex}
    for name, value in (("FlowFabric-Lease", fence), ("FlowFabric-Namespace", os.environ.get("FF_NAMESPACE")),
                        ("Authorization", "FF_API_KEY" in os.environ and "Bearer " + os.environ["FF_API_KEY"])):
        headers.update({name: value} if value else {})
    for n in range(tries):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(SERVER + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refused:
            problem = json.loads(refused.read() or b"{}")
            if not problem.get("retryable"):
                return refused.code, problem
        except OSError as lost:  # also a timeout: the request may have been applied
            problem = {"code": "unreachable", "detail": str(lost)}
        time.sleep(problem.get("retry_after_ms", min(100 * 2 ** n, 5000)) / 1000)
    return 503, problem


class Lost(Exception):
    """The execution was cancelled, or another worker has it: stop, nothing more is accepted."""


class Task:
    """One claimed execution. lost is set once its lease is lost."""

    def __init__(self, claimed):
        self.claimed, self.lost, self.done = claimed, threading.Event(), threading.Event()
        self.path, self.fence = "/v1/executions/" + claimed["execution_id"], claimed["lease"]["fence"]
        threading.Thread(target=self.renew, daemon=True).start()

    def renew(self):
        while not self.done.wait(self.claimed["lease"]["ttl_ms"] / 3000):  # before a third of the lease is over
            status, _ = call("POST", self.path + "/renew", {}, self.fence, tries=1)
            if 400 <= status < 500:  # cancelled, revoked, or taken over
                return self.lost.set()

    def step(self, name, do):
        """Runs do once: a later attempt gets the stored result. The effect key makes effects elsewhere happen once."""
        _, stored = call("GET", self.path + "/steps?inline=true")
        for known in stored["items"]:
            if known["name"] == name:
                return known.get("result")
        status, answer = call("PUT", f"{self.path}/steps/{urllib.parse.quote(name)}", {"result": do()}, self.fence)
        if status >= 400:
            raise Lost(answer.get("code"))
        return answer["result"]

    def end(self, verb, body):
        status, answer = call("POST", f"{self.path}/{verb}", body, self.fence)
        print(self.claimed["execution_id"], verb, status, answer.get("code", ""), flush=True)


def handle(task):
    """The work itself. It runs from its start again after a wait; steps and the wait then return what is stored."""
    order = task.claimed["input"]
    receipt = task.step("charge", lambda: {"paid": order["amount"], "key": task.claimed["effect_key"]})
    resumed = task.claimed.get("resumed")
    if order.get("ask") and not resumed:  # give the work back until a callback arrives
        return task.end("suspend", {"reason_code": "waiting_for_callback", "timeout_ms": 3600_000,
            "waitpoints": [{"fresh": {"waitpoint_key": "shipped"}}], "resume_condition": {"type": "single", "waitpoint_key": "shipped"}})
    for _ in range(order.get("seconds", 0) * 10):  # long work looks whether it is still wanted
        if task.lost.wait(0.1):
            raise Lost("renewal refused")
    if order.get("bad"):
        return task.end("fail", {"category": "bad_order", "class": "permanent", "message": "the order is bad"})
    task.end("complete", {"result": {**receipt, "signals": len(resumed["signals"]) if resumed else 0}})


def heartbeat():
    while True:
        _, answer = call("POST", f"/v1/workers/{ME['worker_instance_id']}/heartbeat", {}, tries=1)
        if answer.get("drain"):
            draining.set()
        elif answer.get("registered") is False:
            call("POST", "/v1/workers", {**ME, "lanes": LANES, "kinds": KINDS})
        time.sleep(1)


def main():
    signal.signal(signal.SIGTERM, lambda *_: draining.set())
    call("POST", "/v1/workers", {**ME, "lanes": LANES, "kinds": KINDS})
    threading.Thread(target=heartbeat, daemon=True).start()
    while not draining.is_set():
        status, claim = call("POST", "/v1/work/claim", {**ME, "lanes": LANES, "kinds": KINDS, "max": 1, "wait_ms": 2000})
        for claimed in claim.get("tasks", []) if status == 200 else []:
            task = Task(claimed)
            try:
                handle(task)
            except Lost:
                print(claimed["execution_id"], "lost", flush=True)
            task.done.set()
    call("POST", f"/v1/workers/{ME['worker_instance_id']}/dead", {"reason": "stopped", "take_leases": False})
    print("drained", flush=True)


if __name__ == "__main__":
    sys.exit(main())
