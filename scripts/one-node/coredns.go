// CoreDNS with the few plugins that a cluster needs. Its release has some fifty, with the clients of several clouds among
// them, and takes minutes to build.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// The order in which a query meets them.
	dnsserver.Directives = []string{"ready", "errors", "cache", "kubernetes", "forward"}
	coremain.Run()
}
