package commands

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric/ops"

	"github.com/spf13/cobra"

	"github.com/flowfabric/flowfabric"
	"github.com/flowfabric/flowfabric/api"
	"github.com/flowfabric/flowfabric/cmd/flowfabric/internal/show"
)

func (s *session) quotas() *cobra.Command {
	list := s.command("list", "List quotas and their use", `
flowfabric quotas list
flowfabric quotas list --wide
flowfabric quotas list --json
`, cobra.NoArgs, func(ctx context.Context, c *flowfabric.Client, _ []string) error {
		return show.List(s.printer, s.quotaView(), c.Quotas().List(ctx))
	})
	get := s.command("get QUOTA", "Show a quota and its use per key", `
flowfabric quotas get mail
flowfabric quotas get mail --json
flowfabric quotas get mail --template '{{.rate_limit}}'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		return s.printQuota(c.Quotas().Get(ctx, args[0]))
	})
	get.ValidArgsFunction = s.completeQuotas
	return group("quotas", "Limits on rate and concurrency", list, get, s.quotaSet(), s.quotaDelete())
}

func (s *session) quotaDelete() *cobra.Command {
	var how ops.DeleteQuotaOptions
	cmd := s.command("delete QUOTA", "Delete a quota", `
flowfabric quotas delete mail
flowfabric quotas delete mail --force
flowfabric quotas delete mail --force --reason 'the mail server has no limit any more'
`, cobra.ExactArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		if err := c.Quotas().Delete(ctx, args[0], how); err != nil {
			return err
		}
		s.printer.Note("deleted: %s", args[0])
		return nil
	})
	cmd.Flags().BoolVar(&how.Force, "force", false, "even while it is in use; work that waits for it continues")
	auditReason(cmd, &how.Reason)
	cmd.ValidArgsFunction = s.completeQuotas
	return cmd
}

// quotaSet changes only the given settings.
func (s *session) quotaSet() *cobra.Command {
	reason := ""
	cmd := s.command("set QUOTA [SETTING]...", "Change settings of a quota, creating it if necessary: rate=10/1m, concurrency=5, per-key; other settings stay", `
flowfabric quotas set mail rate=100/1m
flowfabric quotas set api rate=10/1s concurrency=5 per-key
flowfabric quotas set api rate=off --reason 'they have lifted it'
`, cobra.MinimumNArgs(1), func(ctx context.Context, c *flowfabric.Client, args []string) error {
		var settings api.QuotaSettings
		action := ops.AdminAction{Reason: reason}
		now, err := c.Quotas().Get(ctx, args[0])
		switch {
		case err == nil:
			settings, action.Revision = now.QuotaSettings, &now.Revision
		case flowfabric.CodeOf(err) != "quota_not_found":
			return err
		}
		for _, text := range args[1:] {
			if err := setQuota(&settings, text); err != nil {
				return err
			}
		}
		return s.printQuota(c.Quotas().Put(ctx, args[0], settings, action))
	})
	auditReason(cmd, &reason)
	cmd.ValidArgsFunction = s.completeQuotas
	return cmd
}

// setQuota parses one setting: rate=10/1m, rate=10 in the current window, rate=off, concurrency=5, concurrency=off, per-key,
// per-key=false.
func setQuota(s *api.QuotaSettings, text string) (err error) {
	name, value, given := strings.Cut(text, "=")
	switch {
	case name == "rate" && given:
		limit, window, bounded := strings.Cut(value, "/")
		if bounded {
			if s.Window, err = span(window); err != nil {
				return show.Invalid(text, "write rate=10/1m", "%q is not a duration", window)
			}
		}
		s.RateLimit, err = limitOf(text, limit)
	case name == "concurrency" && given:
		s.ConcurrencyLimit, err = limitOf(text, value)
	case name == "per-key" && !given:
		s.PerKey = true
	case name == "per-key":
		if s.PerKey, err = strconv.ParseBool(value); err != nil {
			err = show.Invalid(text, "write per-key or per-key=false", "%q is neither true nor false", value)
		}
	default:
		err = show.Invalid(text, "write rate=10/1m, concurrency=5 or per-key", "%q is not a setting of a quota", text)
	}
	return err
}

// span parses a window: 1m, 90s, or only a unit, as in 10/s.
func span(text string) (time.Duration, error) {
	if text != "" && !strings.ContainsAny(text[:1], "0123456789") {
		text = "1" + text
	}
	return time.ParseDuration(text)
}

func limitOf(setting, text string) (int, error) {
	if text == "off" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, show.Invalid(setting, "write a number, or off", "%q is not a whole number", text)
	}
	return n, nil
}

func (s *session) printQuota(quota *api.Quota, err error) error {
	if err != nil {
		return err
	}
	p := s.printer
	if err := show.One(p, s.quotaView(), quota); err != nil || len(quota.Keys) == 0 || p.JSON || p.Quiet || p.Template != nil {
		return err
	}
	if err := p.Raw([]byte("\n")); err != nil {
		return err
	}
	return show.All(p, s.quotaKeyView(), quota.Keys)
}

func (s *session) quotaView() show.View[*api.Quota] {
	p := s.printer
	type x = *api.Quota
	sum := func(part func(api.QuotaKey) int) func(x) string {
		return func(q x) string {
			total := 0
			for _, key := range q.Keys {
				total += part(key)
			}
			return strconv.Itoa(total)
		}
	}
	return show.View[x]{ID: func(q x) string { return q.ID }, None: "no quotas", Columns: []show.Column[x]{
		{Name: "QUOTA", Text: func(q x) string { return q.ID }},
		{Name: "RATE", Text: rateText},
		{Name: "CONCURRENCY", Text: func(q x) string { return limitText(q.QuotaSettings.ConcurrencyLimit) }},
		{Name: "PER KEY", Text: func(q x) string { return yesText(q.QuotaSettings.PerKey) }},
		{Name: "KEYS", Text: func(q x) string {
			if q.MoreKeys {
				return fmt.Sprintf("%d+", len(q.Keys))
			}
			return strconv.Itoa(len(q.Keys))
		}},
		{Name: "SLOTS", Text: sum(func(k api.QuotaKey) int { return k.Slots })},
		{Name: "BLOCKED", Text: sum(func(k api.QuotaKey) int { return k.Blocked })},
		{Name: "CHANGED", Text: func(q x) string { return p.Time(q.UpdatedAt) }, Wide: true},
		{Name: "REVISION", Text: func(q x) string { return strconv.FormatInt(q.Revision, 10) }, Wide: true},
	}}
}

func (s *session) quotaKeyView() show.View[api.QuotaKey] {
	p := s.printer
	type x = api.QuotaKey
	return show.View[x]{ID: func(k x) string { return k.Key }, Columns: []show.Column[x]{
		{Name: "KEY", Text: func(k x) string { return k.Key }},
		{Name: "SLOTS", Text: func(k x) string { return strconv.Itoa(k.Slots) }},
		{Name: "IN WINDOW", Text: func(k x) string { return strconv.Itoa(k.Admissions) }},
		{Name: "BLOCKED", Text: func(k x) string { return strconv.Itoa(k.Blocked) }},
		{Name: "NEXT FREE", Text: func(k x) string { return p.Time(k.NextFreeAt) }},
		{Name: "HOLDERS", Text: func(k x) string {
			var ids []string
			for _, id := range k.Holders {
				ids = append(ids, bareID(id))
			}
			return strings.Join(ids, " ")
		}, Wide: true},
	}}
}

func rateText(q *api.Quota) string {
	if q.QuotaSettings.RateLimit == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%s", q.QuotaSettings.RateLimit, shortSpan(q.QuotaSettings.Window))
}

// shortSpan writes 1m instead of 1m0s.
func shortSpan(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func limitText(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func yesText(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// quotaUses parses uses of quotas: mail, or mail:acme with a key. If a quota's id contains a colon, use --policy instead.
func quotaUses(texts []string) (uses []api.QuotaUse) {
	for _, text := range texts {
		if text != "" {
			quota, key, _ := strings.Cut(text, ":")
			uses = append(uses, api.QuotaUse{Quota: quota, Key: key})
		}
	}
	return uses
}

func quotaUsesText(uses []api.QuotaUse) string {
	var all []string
	for _, use := range uses {
		text := use.Quota
		if use.Key != "" {
			text += ":" + use.Key
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

// amounts parses amounts by dimension: output_tokens=2000.
func amounts(flag string, texts []string) (map[string]int64, error) {
	given, err := pairs(flag, texts)
	if err != nil || len(given) == 0 {
		return nil, err
	}
	all := map[string]int64{}
	for _, dimension := range slices.Sorted(maps.Keys(given)) {
		text := given[dimension]
		if all[dimension], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, show.Invalid(flag, "write output_tokens=2000", "%q is not a whole number", text)
		}
	}
	return all, nil
}
