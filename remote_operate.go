package flowfabric

// remoteOperate has the commands of operators whose values are no values of package api yet.
type remoteOperate struct{ client *remote }
