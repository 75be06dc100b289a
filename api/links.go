package api

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// LinkPage is what a link shows to its holder.
type LinkPage struct {
	ApprovalLink
	Kind      string            `json:"kind" doc:"Kind of the execution."`
	Tags      map[string]string `json:"tags,omitempty" doc:"Tags of the execution."`
	Asker     string            `json:"asker,omitempty" doc:"Who submitted it."`
	Needed    int               `json:"needed,omitempty" doc:"How many equal decisions are needed; absent if the condition does not count."` // 0: no count
	Counted   string            `json:"counted,omitempty" doc:"Signal name that counts; absent if any counts."`                              // "": any
	Progress  int               `json:"progress,omitempty" doc:"How many there are; absent if the condition does not count."`
	TimeoutAt time.Time         `json:"timeout_at,omitzero" doc:"When the suspension times out."`
	Now       time.Time         `json:"server_time,omitzero" doc:"The store's clock."`

	// Refused is why it can no longer be decided; nil if it can, or is decided.
	Refused error `json:"-" apart:"true"`
}

// AppendJSON adds what MarshalJSON writes to a text.
func (p LinkPage) AppendJSON(text []byte) ([]byte, error) {
	written := struct {
		ApprovalLink
		Kind      string            `json:"kind"`
		Tags      map[string]string `json:"tags,omitempty"`
		Asker     string            `json:"asker,omitempty"`
		Needed    int               `json:"needed,omitempty"`
		Counted   string            `json:"counted,omitempty"`
		Progress  *int              `json:"progress,omitempty"` // including 0, if the condition counts
		TimeoutAt time.Time         `json:"timeout_at,omitzero"`
		Now       time.Time         `json:"server_time,omitzero"`
	}{p.ApprovalLink, p.Kind, p.Tags, p.Asker, p.Needed, p.Counted, nil, p.TimeoutAt, p.Now}
	if p.Needed > 0 {
		written.Progress = &p.Progress
	}
	return jsonx.Append(text, &written)
}

// MarshalJSON writes the page as the HTTP API shows it.
func (p LinkPage) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (p *LinkPage) UnmarshalJSON(text []byte) error { return readAnswer(text, p) }

// printableLinkPage is a page for printing: its link without methods, and without its address.
type printableLinkPage struct {
	ApprovalLink   printableLink
	Kind           string
	Tags           map[string]string
	Asker          string
	Needed         int
	Counted        string
	Progress       int
	TimeoutAt, Now time.Time
	Refused        error
}

func (p LinkPage) printable() printableLinkPage {
	return printableLinkPage{p.ApprovalLink.printable(), p.Kind, p.Tags, p.Asker, p.Needed, p.Counted, p.Progress, p.TimeoutAt, p.Now, p.Refused}
}

// Format prints the page without the address of the link, for every verb.
func (p LinkPage) Format(f fmt.State, verb rune) {
	fmt.Fprintf(f, fmt.FormatString(f, verb), p.printable())
}

// LogValue returns the page without the address of the link.
func (p LinkPage) LogValue() slog.Value { return slog.AnyValue(p.printable()) }

// LinkDecision is the choice of the holder of a link.
type LinkDecision struct {
	Decision string `json:"decision" doc:"Id of a decision that the link offers."`
	Comment  string `json:"comment,omitempty" maxLength:"4096" doc:"Comment; some links require it."`
}

// LinkOutcome is the answer to a decision.
type LinkOutcome struct {
	Outcome   string    `json:"outcome" enum:"decided,already_decided" doc:"Whether this call decided."`
	Decision  string    `json:"decision" doc:"Id of the decision."`
	DecidedAt time.Time `json:"decided_at,omitzero" doc:"When."`
	Effect    string    `json:"effect,omitempty" doc:"Effect of the signal; absent if it was decided before."` // "" if it was decided before
}

// MarshalJSON writes the outcome as the HTTP API shows it.
func (o LinkOutcome) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&o) }

// UnmarshalJSON reads what MarshalJSON and the HTTP API write.
func (o *LinkOutcome) UnmarshalJSON(text []byte) error { return readAnswer(text, o) }
