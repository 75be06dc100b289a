package manifests

import (
	"os"
	"testing"

	"github.com/compose-spec/compose-go/v2/schema"
	"sigs.k8s.io/yaml"
)

func TestTheComposeFileFitsTheSchemaAndNamesSettings(t *testing.T) {
	t.Parallel()
	const path = "../../deploy/compose/compose.yaml"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(file); err != nil {
		t.Fatal(err)
	}
	services, secrets := file["services"].(map[string]any), file["secrets"].(map[string]any)
	for name, service := range services {
		used, _ := service.(map[string]any)["secrets"].([]any)
		for _, secret := range used {
			if _, there := secrets[secret.(string)]; !there {
				t.Errorf("%s uses the secret %v, which does not exist", name, secret)
			}
		}
	}
	server := services["flowfabric"].(map[string]any)
	for variable := range server["environment"].(map[string]any) {
		knownVariable(t, path, variable)
	}
	server["port"] = "7433"
	if err := schema.Validate(file); err == nil {
		t.Error("a service with a field that Compose does not know was accepted")
	}
}
