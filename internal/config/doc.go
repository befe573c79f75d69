// Package config reads the broker's configuration.
//
// One table ([Settings]) holds every setting: its key, default, unit, bounds and a sentence of help. All four
// places a value can come from are derived from the key, so that none can be forgotten:
//
//	key          client_port
//	flag         --client-port 2921
//	environment  EASTGUARD_CLIENT_PORT=2921, or CLIENT_PORT=2921, which loses to it
//	file         client_port: 2921          in -c FILE, or ./eastguard.yaml
//
// [Load] parses each source into typed values, lays them over one another (default < file < environment <
// command line), checks the result and says for each key which source won ([Sources]). Every error is one line
// that names the source, the key and the value, with a hint.
//
// The package touches nothing outside its arguments: arguments, environment and files come in from package main,
// so that the whole of it is tested as a function.
package config
