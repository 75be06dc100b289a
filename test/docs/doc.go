// Package docs holds the pages to what they say (U263): shell blocks are run against a real server, blocks of Go compile, JSON validates
// against the OpenAPI document, and every link, route, flag, variable, metric, code and event that a page names exists. The pages
// that are generated from code are compared with it. It does not know what the pages are about.
package docs
