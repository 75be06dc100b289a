// Package webhook holds the rules of outgoing webhooks: secrets and signatures, the body of a request, which addresses may be called, what an answer
// means and when a failed delivery is tried again.
//
// Everything here is a pure function of values: it performs no I/O, reads no clock and draws no random numbers. It knows neither endpoints nor
// events. It imports base and the standard library alone. Its files:
//
//   - secret, sign: the secrets of an endpoint and the signatures that they make
//   - body, request: the JSON document of a request, and what a sender is given of it
//   - address, ranges, host: which URLs may be registered and which addresses may be connected to
//   - judge, delay: what the answer of a receiver means, and the times of the attempts
package webhook
