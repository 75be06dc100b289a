package server

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flowfabric/flowfabric/internal/core"
	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/wire"
)

// oddTexts are texts that one or the other rule refuses. White space beyond ASCII is not among them: \s of Go does not know it, that of clients does.
func oddTexts() []string {
	const uuid = "0198f0a0-0000-7000-8000-000000000000"
	all := []string{
		"a", "A", "-a", "a b", "a.b", "a..b", "a:b", "a/b", "é", "a\x00", "a\x7f", "a\u0085", " ", "\t", "~", "!", "0", "01", "ff.a", "a_b.c_d", "a.",
		uuid, strings.ToUpper(uuid), uuid[1:], uuid + "0", "{fp:0}:" + uuid, "{fp:255}:" + uuid, "{fp:256}:" + uuid, "{fp:01}:" + uuid, "{fp:}:" + uuid,
		uuid + ".0." + uuid, uuid + ".17." + uuid, uuid + ".01." + uuid, uuid + ".-1." + uuid, uuid + "." + uuid, "a.1.b",
		strings.Repeat("0f", 32), strings.Repeat("0F", 32), strings.Repeat("0g", 32),
	}
	for _, f := range []form{statusForm, publicForm, nextForm, reasonForm, waitForm, behaviorForm} {
		all = append(all, strings.Split(strings.Trim(f.pattern, "()"), "|")...)
	}
	for _, n := range []int{63, 64, 65, 127, 128, 129, 255, 256, 257} {
		all = append(all, strings.Repeat("a", n))
	}
	return all
}

func TestU116_the_document_takes_the_texts_that_the_rules_take(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]struct {
		form  form
		check func(text string) error
	}{
		"lane":         {laneForm, base.CheckLane},
		"kind":         {kindForm, base.CheckKind},
		"name":         {nameForm, base.CheckNamespace},
		"quota":        {nameForm, core.CheckQuotaID},
		"worker":       {workerForm, func(text string) error { return base.CheckWorkerID("worker_id", text) }},
		"content type": {contentForm, func(text string) error { return base.CheckContentType("content_type", text) }},
		"plain text":   {form{plainForm.pattern, 256}, base.CheckIdempotencyKey},
		"id":           {idForm, func(text string) error { _, err := base.ParseID(text); return err }},
		"category":     {bodyForms["FailRequestBody.category"], func(text string) error { return base.CheckCategory("category", text) }},
		"status":       {statusForm, func(text string) error { return (&core.Filter{Status: []string{text}}).Validate() }},
		"public":       {publicForm, func(text string) error { return (&core.Filter{PublicState: []string{text}}).Validate() }},
		"next":         {nextForm, func(text string) error { return (&core.Filter{Next: []string{text}}).Validate() }},
		"reason":       {reasonForm, func(text string) error { return (&core.Filter{Reason: []string{text}}).Validate() }},
		"wait":         {waitForm, core.CheckReasonCode},
		"tag key": {tagForm, func(text string) error {
			if strings.HasPrefix(text, "ff.") {
				return nil // reserved; the document does not tell
			}
			return base.CheckTagKey(text)
		}},
		"fence": {fenceForm, func(text string) error {
			fence, err := wire.ParseLeaseRef(text)
			if err == nil && fence.Epoch == 0 {
				return base.Invalid("lease", "the epoch is missing") // as partial_fence, when the parts are read
			}
			for _, part := range []string{fence.LeaseID, fence.AttemptID} {
				if _, ok := base.ParseUUID(part); !ok && err == nil {
					return base.Invalid("lease", "no UUID")
				}
			}
			return err
		}},
	} {
		pattern := regexp.MustCompile("^(" + rule.form.pattern + ")$")
		for _, text := range oddTexts() {
			shown := pattern.MatchString(text) && (rule.form.longest == 0 || utf8.RuneCountInString(text) <= rule.form.longest)
			if taken := rule.check(text) == nil; taken != shown {
				t.Errorf("%s %q: the document takes it: %v; the rule: %v", name, text, shown, taken)
			}
		}
	}
}
