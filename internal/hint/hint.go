// Package hint writes hints in the words of their reader. A hint is written once, in the words of HTTP, and names what differs between HTTP,
// Go and the command line in backquotes: an argument, a header, a route, a fact of the refusal. It does not know which hints there are.
package hint

import (
	"strings"
)

// words are a term in Go and on the command line.
type words struct{ inGo, inCommands string }

// terms are the terms whose words do not follow from their spelling. A test compares the routes with the table of operations.
var terms = map[string]words{
	"FlowFabric-Namespace":             {"ConnectConfig.Namespace", "--namespace or FF_NAMESPACE"},
	"Authorization: Bearer":            {"ConnectConfig.APIKey", "FF_API_KEY or --key-file"},
	"FlowFabric-Lease":                 {"Lease", "--lease"},
	"Idempotency-Key":                  {"RequestKey", "arguments"},
	"If-Match":                         {"Revision", "--expect-revision"},
	"FF_STORE_SCHEMA":                  {"Config.Schema", "--store-schema or FF_STORE_SCHEMA"},
	"Retry-After":                      {"Error.RetryAfter", "a moment"},
	"GET /v1/executions/{id}/explain":  {"Executions.Explain", "flowfabric explain"},
	"GET /v1/executions/{id}/attempts": {"Executions.Attempts", "flowfabric attempts"},
	"GET /v1/quotas":                   {"Quotas.List", "flowfabric quotas list"},
	"GET /v1/budgets":                  {"Budgets.List", "flowfabric budgets list"},
	"GET /v1/workers":                  {"Workers.List", "flowfabric workers list"},
	"GET /v1/api-keys":                 {"Admin.APIKeys.List", "flowfabric api-keys list"},
	"GET /v1/keys":                     {"Admin.SigningKeys.List", "flowfabric keys list"},
	"POST /v1/keys/seed":               {"Admin.SigningKeys.Seed", "flowfabric keys seed"},
	"POST /v1/keys/rotate":             {"Admin.SigningKeys.Rotate", "flowfabric keys rotate"},
	"GET /v1/webhooks":                 {"Admin.Webhooks.List", "flowfabric webhooks list"},
	"GET /v1/whoami":                   {"Admin.Whoami", "flowfabric info"},
	"GET /v1/info":                     {"Admin.Info", "flowfabric info"},
	"GET /v1/admin/doctor":             {"Admin.Doctor", "flowfabric doctor"},
	"POST /v1/lanes/{lane}/resume":     {"Lanes.Resume", "flowfabric lanes resume"},
	"POST /v1/api-keys":                {"Admin.APIKeys.Create", "flowfabric api-keys create"},
}

// current begins the terms for facts of a refusal: `current.limit`.
const current = "current."

// Go writes a hint in the words of Go.
func Go(text string) string {
	return replace(text, func(term string) string {
		if fact, found := strings.CutPrefix(term, current); found {
			return `Current["` + fact + `"]`
		}
		if found, known := terms[term]; known {
			return found.inGo
		}
		return option(term)
	})
}

// Command writes a hint in the words of the command line. flag returns the flag for an argument, "" if the command has none; fact returns
// the value of a fact, "" if the refusal has none.
func Command(text string, flag, fact func(name string) string) string {
	return replace(text, func(term string) string {
		if name, found := strings.CutPrefix(term, current); found {
			if value := fact(name); value != "" {
				return value
			}
			return strings.ReplaceAll(name, "_", " ")
		}
		if found, known := terms[term]; known {
			return found.inCommands
		}
		if given := flag(term); given != "" {
			return given
		}
		return term
	})
}

// Plain writes a hint without marks, in the words of HTTP.
func Plain(text string) string { return replace(text, func(term string) string { return term }) }

// Flag is the flag of the command line for a header; "" if there is none.
func Flag(header string) string {
	flag, _, _ := strings.Cut(terms[header].inCommands, " ")
	if strings.HasPrefix(flag, "--") {
		return flag
	}
	return ""
}

// replace replaces the terms of a hint.
func replace(text string, word func(term string) string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "`")
		term, after, closed := strings.Cut(rest, "`")
		if !found || !closed {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(before)
		b.WriteString(word(term))
		text = after
	}
}

// initialisms are written in capitals in Go.
var initialisms = map[string]string{"id": "ID", "ids": "IDs", "api": "API", "url": "URL", "ttl": "TTL", "json": "JSON"}

// option is the field of Go for an argument: BudgetIDs for budget_ids, Delay for delay_ms. Other terms stay as they are.
func option(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return name
	}
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimSuffix(name, "_ms"), "_") {
		if capitals := initialisms[part]; capitals != "" {
			b.WriteString(capitals)
			continue
		}
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// Routes returns the terms that are routes, with their words in Go and on the command line.
func Routes() map[string][2]string {
	routes := map[string][2]string{}
	for term, found := range terms {
		if _, _, isRoute := strings.Cut(term, " /"); isRoute {
			routes[term] = [2]string{found.inGo, found.inCommands}
		}
	}
	return routes
}
