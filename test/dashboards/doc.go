// Package dashboards checks the dashboard and the alerts that FlowFabric ships: every series and label that they name is in the table of
// metrics, and has data once a story was told against a server. It looks at everything and nothing imports it.
package dashboards
