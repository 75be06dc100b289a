package webhook

import (
	"strconv"
	"strings"
	"time"
)

// MaxAnswer is how much of the body of an answer is recorded, in bytes.
const MaxAnswer = 1024

// Answer is what became of one attempt.
type Answer struct {
	Status     int           // of HTTP; 0: there was no answer
	RetryAfter time.Duration // what the receiver asked for; 0: nothing; at most 24 hours
	Err        string        // one of the Err constants, perhaps with a colon and more; "": the answer came whole and in time
	Duration   time.Duration
	Body       []byte // the first 1,024 bytes
}

// The causes of an attempt without a whole answer, which begin Answer.Err.
const (
	ErrAddressRefused = "address_refused" // the name has an address that webhooks may not reach
	ErrURLRefused     = "url_refused"     // the URL is not permitted, or no longer
	ErrNameNotFound   = "name_not_found"  // the name could not be resolved
	ErrConnect        = "connect_failed"  // no address accepted a connection
	ErrTLS            = "tls_failed"      // the receiver could not be authenticated
	ErrTimeout        = "timeout"         // there was no whole answer in time
	ErrAnswer         = "bad_answer"      // the connection ended, or what came is no HTTP
	ErrInterrupted    = "interrupted"     // the sender was closed or its caller gave up: the attempt says nothing of the receiver
)

// Outcome is what an answer means for a delivery.
type Outcome uint8

// The outcomes.
const (
	Again     Outcome = iota // it failed and is tried again after Delay
	Delivered                // the receiver has it
	Gone                     // 410: the endpoint is to be disabled
)

// Verdict is what an answer means.
type Verdict struct {
	Outcome Outcome
	Slow    bool          // the endpoint gets one request at a time until the next success
	Wait    time.Duration // the receiver asked to wait this long; 0: it did not
}

// Judge returns what an answer means. Retry-After counts with 429 and 503.
func Judge(a Answer) Verdict {
	var v Verdict
	switch {
	case a.Status == 410:
		v.Outcome = Gone
	case a.Status >= 200 && a.Status <= 299 && a.Err == "":
		v.Outcome = Delivered
	case a.Status == 429 || a.Status == 503:
		v.Slow, v.Wait = true, min(max(a.RetryAfter, 0), MaxRetryAfter)
	case a.Status == 502 || a.Status == 504:
		v.Slow = true
	}
	return v
}

// MaxRetryAfter bounds what a receiver may ask for.
const MaxRetryAfter = 24 * time.Hour

// ParseRetryAfter reads the header Retry-After, seconds or a date of HTTP, at that moment. It returns 0 for anything else and for the past, at most
// 24 hours.
func ParseRetryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if text != "" && strings.Trim(text, "0123456789") == "" {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil || seconds > int64(MaxRetryAfter/time.Second) {
			return MaxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	for _, layout := range dates {
		if at, err := time.Parse(layout, text); err == nil {
			return min(max(at.Sub(now), 0), MaxRetryAfter)
		}
	}
	return 0
}

// dates are the forms of a date in HTTP: today's, that of RFC 850 and that of asctime.
var dates = []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}
