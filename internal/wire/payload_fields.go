package wire

import "github.com/flowfabric/flowfabric/api"

// ResultField is the payload field result of a request (U8).
type ResultField struct {
	Result api.Payload `json:"result,omitempty" spread:"sent" doc:"The result."`
}

// DetailField is the payload field detail of a request (U8).
type DetailField struct {
	Detail api.Payload `json:"detail,omitempty" spread:"sent" doc:"The detail of the failure."`
}

// PayloadField is the payload of a signal in a request (U8).
type PayloadField struct {
	Payload api.Payload `json:"payload,omitempty" spread:"sent" doc:"The payload."`
}
