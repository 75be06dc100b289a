package apifuzz

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric/internal/wire"
)

// The names of what the fuzzer makes. A namespace of the tests is made and deleted again; no worker works there.
var (
	lanes      = []string{"default", "default", "slow", "rare"}
	kinds      = []string{"job", "job", "mail"}
	instances  = []string{"w-1", "w-2"}
	namespaces = []string{"default", "tenant", "other"}
	statuses   = []string{"ready", "delayed", "blocked", "running", "succeeded", "failed", "cancelled", "expired"}
	policies   = []raw{
		`{}`, `{"retry_policy":{"max_retries":2}}`, `{"retry_policy":{"max_retries":1,"backoff":{"strategy":"fixed","delay_ms":500}}}`, `{"max_reclaims":2}`,
	}
)

// known draws a field by its name, where only some values mean something.
func (d *drawer) known(o *operation, name string, about subject) (value, bool) {
	if v, ok := d.flowField(o, name, about); ok {
		return v, true
	}
	switch name {
	case "execution_id":
		if o.id == wire.SubmitExecution.ID || o.id == wire.SubmitExecutions.ID {
			return d.uuid(), true
		}
		return about.lease.execution, true
	case "lease", "leases":
		return about.lease.text, true
	case "policy":
		return pick(d.Rand, append(policies, limitPolicies...)), true
	case "kind", "kinds":
		return pick(d.Rand, kinds), true
	case "lane", "lanes":
		return pick(d.Rand, lanes), true
	case "namespaces":
		return pick(d.Rand, namespaces[:1]), true
	case "worker_id":
		return "w", true
	case "grant_key":
		return d.mem.some(d.Rand, name), true
	case "worker_instance_id":
		if o.id == wire.ClaimGrant.ID {
			return "w-1", true
		}
		return pick(d.Rand, instances), true
	case "capabilities", "requires", "capability":
		return "gpu", true
	case "status", "expect_status":
		return pick(d.Rand, statuses), true
	case "priority", "fairness_weights":
		return d.small(name)
	case "lease_ttl_ms", "ttl_ms":
		return raw(strconv.Itoa(500 + d.IntN(60_000))), true
	case "wait_ms", "delay_ms":
		return raw(strconv.Itoa(d.IntN(20))), true
	case "max_payload_bytes", "max_submit_per_second", "max_concurrent":
		return raw(strconv.Itoa(10_000 + d.IntN(1000))), true
	case "state":
		if o.id == wire.PutLane.ID {
			return "active", true
		}
	case "retention_ms":
		return raw(`{"succeeded":86400000}`), true
	case "kid", "secret_hex", "grace_ms", "force":
		return d.signing(o, name), true
	case "lease_id", "lease_epoch":
		return d.fencePart(name, about), true
	}
	if v, ok := d.ofWebhook(o, name); ok {
		return v, ok
	}
	if v, ok := d.ofLimits(o, name); ok {
		return v, ok
	}
	return d.ofWait(o, name, about)
}

// signing draws what a call on signing keys takes. The active key is never revoked: the server would not be ready without one.
func (d *drawer) signing(o *operation, name string) value {
	switch {
	case name == "secret_hex":
		return strings.Repeat("0123456789abcdef", 4)
	case name == "grace_ms":
		return raw(strconv.Itoa(d.IntN(3_600_000)))
	case name == "force":
		return raw("false")
	case o.id == wire.SeedSigningKey.ID: // one that is there: another would be refused
		return d.mem.some(d.Rand, "kid", "key")
	default:
		return "key-" + strconv.Itoa(d.IntN(1000))
	}
}

func (d *drawer) small(name string) (value, bool) {
	if name == "priority" {
		return raw(strconv.Itoa(d.IntN(200) - 100)), true
	}
	return raw(`{"default":2}`), true
}

func (d *drawer) fencePart(name string, about subject) value {
	id, rest, _ := strings.Cut(about.lease.fence, ".")
	if name == "lease_id" {
		return id
	}
	epoch, _, _ := strings.Cut(rest, ".")
	return raw(epoch)
}

// pathValue draws a parameter of the path, percent-encoded in one way or another.
func (d *drawer) pathValue(o *operation, name string, about subject) string {
	text := d.flowPath(o, name, about)
	switch {
	case text != "":
	case name == "id" && strings.HasPrefix(o.path, "/v1/executions"):
		text = about.id
		if _, bare, ok := strings.Cut(text, ":"); ok && d.IntN(3) == 0 {
			text = bare[strings.LastIndexByte(bare, ':')+1:]
		}
	case name == "id" && strings.HasPrefix(o.path, "/v1/bulk"):
		text = d.mem.some(d.Rand, "job_id")
	case name == "id" && (strings.HasPrefix(o.path, "/v1/budgets") || strings.HasPrefix(o.path, "/v1/quotas")):
		text = d.limitName(o)
	case name == "id" && strings.HasPrefix(o.path, "/v1/webhooks"):
		text = about.post.endpoint
	case name == "delivery":
		text = about.post.delivery
	case name == "id":
		text = d.mem.some(d.Rand, "key_id")
	case name == "waitpoint":
		text = about.wait.waitpoint
	case name == "link":
		text = about.wait.link
	case name == "token" && strings.HasPrefix(o.path, "/approve"):
		text = about.wait.linkToken
	case name == "token":
		text = about.wait.token
	case name == "kid":
		text = d.mem.some(d.Rand, "kid", "key")
	case name == "lane":
		text = d.mem.some(d.Rand, "lane", lanes...)
	case name == "instance":
		text = d.mem.some(d.Rand, "worker_instance_id", instances...)
	case name == "n":
		text = pick(d.Rand, []string{"0", "0", "1", "2"})
	case name == "code":
		text = pick(d.Rand, []string{"invalid_json", "lease_expired", "internal", "unknown_field"})
	case o.id == wire.DeleteNamespace.ID: // the one in which the work is stays
		text = pick(d.Rand, namespaces[1:])
	case strings.HasPrefix(o.path, "/v1/namespaces"):
		text = pick(d.Rand, namespaces)
	default:
		text = pick(d.Rand, []string{"step-1", "step-2", "charge the card"})
	}
	if d.IntN(8) == 0 {
		return encodeAll(text)
	}
	return url.PathEscape(text)
}

// encodeAll percent-encodes every byte.
func encodeAll(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteString("%" + strings.ToUpper(strconv.FormatUint(uint64(text[i])|0x100, 16)[1:]))
	}
	return b.String()
}

// queryValue draws a query parameter.
func (d *drawer) queryValue(o *operation, p parameter, about subject) []pair {
	one := func(text string) []pair { return []pair{{p.name, url.QueryEscape(text)}} }
	if drawn := d.limitQuery(o, p.name, about); drawn != nil {
		return drawn
	}
	switch p.name {
	case "tag":
		return []pair{{"tag.team", url.QueryEscape(d.word())}}
	case "cursor":
		return one(d.mem.some(d.Rand, "next_cursor "+o.id, ""))
	case "after", "last_event_id":
		return one(d.mem.some(d.Rand, "next", "start", "end"))
	case "limit":
		return one(strconv.Itoa(d.IntN(30)))
	case "by":
		return one(pick(d.Rand, []string{"status", "public_state", "kind", "lane", "tag.team"}))
	case "include":
		return one(pick(d.Rand, []string{"input", "result", "attempts", "signals", "events"}))
	case "reason", "next", "public_state", "outcome":
		return nil // words of tables that the document does not list: what is spoilt tries them
	case "execution_id", "parent_id", "flow_id":
		return one(about.id)
	case "suspension":
		return one(about.wait.suspension)
	}
	v := d.draw(o, p.schema, p.name, about, 0)
	if all, ok := v.([]value); ok && len(all) > 0 {
		v = all[0]
	}
	text := textOf(v)
	if plain, ok := v.(string); ok {
		text = plain
	}
	return one(text)
}

// headerValue draws a header; "": none.
func (d *drawer) headerValue(name string, about subject) string {
	switch name {
	case "FlowFabric-Lease":
		return about.lease.fence
	case "FlowFabric-Token":
		return about.wait.token
	case "FlowFabric-Namespace":
		return "default"
	case "X-Request-Id":
		return "request " + strconv.Itoa(d.IntN(1000))
	case "Idempotency-Key":
		return "key-" + strconv.Itoa(d.IntN(1_000_000))
	case "If-Match":
		return `"` + strconv.Itoa(1+d.IntN(3)) + `"`
	case "If-None-Match":
		return `W/"abc"`
	case "Prefer":
		return "wait=0"
	default:
		return ""
	}
}
