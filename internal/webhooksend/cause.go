package webhooksend

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"

	"github.com/flowfabric/flowfabric/internal/core/base"
	"github.com/flowfabric/flowfabric/internal/core/webhook"
)

// maxReason bounds the reason why a certificate was refused, in bytes.
const maxReason = 200

// cause is the text of Answer.Err for an error. Errors of the network are not shown: they contain addresses of name servers, and URLs.
func cause(ctx context.Context, err error) string {
	switch {
	case errors.Is(err, errRefused):
		return webhook.ErrAddressRefused
	case errors.Is(err, errURL):
		return webhook.ErrURLRefused
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return webhook.ErrTimeout
	case ctx.Err() != nil:
		return webhook.ErrInterrupted
	case errors.Is(err, errName):
		return webhook.ErrNameNotFound
	case errors.Is(err, errConnect):
		return webhook.ErrConnect
	case timedOut(err):
		return webhook.ErrTimeout
	}
	if reason, found := unauthenticated(err); found {
		return webhook.ErrTLS + reason
	}
	return webhook.ErrAnswer
}

// timedOut reports whether a step took too long although the attempt had time left: a connection may have been opened for an earlier attempt.
func timedOut(err error) bool {
	var slow interface{ Timeout() bool }
	return errors.As(err, &slow) && slow.Timeout()
}

// unauthenticated reports whether TLS failed. The reason names the fault of a certificate, which its owner needs to know.
func unauthenticated(err error) (reason string, found bool) {
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return ": " + base.CutText(strings.ToValidUTF8(certificate.Err.Error(), "\uFFFD"), maxReason), true
	}
	var alert tls.AlertError
	var record tls.RecordHeaderError
	if errors.As(err, &alert) || errors.As(err, &record) {
		return "", true
	}
	return "", strings.Contains(err.Error(), "tls: ")
}
