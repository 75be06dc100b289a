package api

import (
	"time"

	"github.com/flowfabric/flowfabric/internal/jsonx"
)

// Signal is an external event for suspended work. Token is the credential. JSON has the signal without its destination.
type Signal struct {
	WaitpointID string `json:"-" apart:"true"`
	Token       Token  `json:"-" apart:"true"`
	ExecutionID ID     `json:"-" apart:"true"` // "": not compared

	Name           string    `json:"name" required:"true" maxLength:"128" doc:"Name of the signal."`
	Payload        Payload   `json:"payload,omitempty" spread:"sent" doc:"The payload."`                                 // at most 256 KiB
	Category       *string   `json:"category,omitempty" maxLength:"64" doc:"Category; external if absent."`              // nil: external
	SourceType     string    `json:"source_type,omitempty" maxLength:"64" doc:"Type of the sender; external if absent."` // "": external
	SourceIdentity string    `json:"source_identity,omitempty" maxLength:"256" doc:"Identity claimed by the sender."`
	CorrelationID  string    `json:"correlation_id,omitempty" maxLength:"128" doc:"Correlation id of the sender."`
	IdempotencyKey string    `json:"idempotency_key,omitempty" doc:"A second signal with it is a duplicate."`             // a second signal with it is a duplicate
	SignalID       string    `json:"signal_id,omitempty" doc:"UUID of the signal, also idempotent; generated if absent."` // "": generated; a second signal with it is a duplicate
	SentAt         time.Time `json:"sent_at,omitzero" doc:"When it was sent, by the sender's clock."`
}

// MarshalJSON writes the signal as the HTTP API accepts it, without its destination.
func (s Signal) MarshalJSON() ([]byte, error) { return jsonx.Marshal(&s) }

// UnmarshalJSON reads a signal as strictly as the HTTP API does.
func (s *Signal) UnmarshalJSON(text []byte) error { return readRequest(text, s) }
