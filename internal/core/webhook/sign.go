package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// The headers of a request.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

// signatureVersion begins each signature: HMAC-SHA256.
const signatureVersion = "v1,"

// Timestamp returns the value of the header webhook-timestamp of an attempt at that moment: Unix seconds.
func Timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// Sign returns the value of the header webhook-signature: one signature per secret, in the order of the secrets, separated by spaces. The body is
// signed as it is sent, byte for byte. Zero secrets are ignored.
func Sign(secrets []Secret, id string, at time.Time, body []byte) string {
	signed := id + "." + Timestamp(at) + "."
	signatures := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		if secret.IsZero() {
			continue
		}
		mac := hmac.New(sha256.New, secret.Bytes())
		mac.Write([]byte(signed))
		mac.Write(body)
		signatures = append(signatures, signatureVersion+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(signatures, " ")
}
