package story

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// tolerance is how old a message may be, and how far the clocks may differ. An older one may be a copy that somebody recorded.
const tolerance = 5 * time.Minute

// errForged is the answer to every message that does not verify.
var errForged = errors.New("the message is not from FlowFabric, or is too old")

// verify checks a message as the Standard Webhooks specification says: one of its signatures must be that of the secret over id, timestamp and body. The
// body must be the bytes that were received, not JSON that was decoded and encoded again.
func verify(secret string, h http.Header, body []byte, now time.Time) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return errForged
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(h.Get("webhook-id") + "." + h.Get("webhook-timestamp") + "."))
	mac.Write(body)
	want := mac.Sum(nil)
	for signature := range strings.FieldsSeq(h.Get("webhook-signature")) {
		given, found := strings.CutPrefix(signature, "v1,")
		if got, err := base64.StdEncoding.DecodeString(given); found && err == nil && hmac.Equal(got, want) {
			return nil
		}
	}
	return errForged
}
