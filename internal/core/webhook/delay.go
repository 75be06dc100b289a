package webhook

import "time"

// pauses are the times between the attempts of a delivery. The first attempt is made at once.
var pauses = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// MaxAttempts is after how many failures a delivery is dead.
const MaxAttempts = len(pauses) + 1

// Delay returns how long a delivery waits after so many failures: 0 after none. Jitter is a random number of 0 to 1 and adds up to a fifth. It
// reports false after the tenth failure: the delivery is dead.
func Delay(failures int, jitter float64) (time.Duration, bool) {
	switch {
	case failures <= 0:
		return 0, true
	case failures >= MaxAttempts:
		return 0, false
	}
	pause := pauses[failures-1]
	return pause + time.Duration(min(max(jitter, 0), 1)*float64(pause)/5), true
}

// Delay is the function of that name, or what the receiver asked for if that is longer.
func (v Verdict) Delay(failures int, jitter float64) (time.Duration, bool) {
	pause, again := Delay(failures, jitter)
	if !again {
		return 0, false
	}
	return max(pause, v.Wait), true
}
