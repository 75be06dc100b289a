package webhook

import "time"

// Request is one attempt of a delivery.
type Request struct {
	URL     string
	ID      string   // of the event, the same in every attempt
	Body    []byte   // sent and signed as it is
	Secrets []Secret // that sign, the newest first
	At      time.Time
}
