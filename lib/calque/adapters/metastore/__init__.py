"""Hive metastores over Thrift.

`client` has the connections, `channel` and `logins` what lies below them, `wire` and `messages` the protocol, `log` and
`catalog` the ports, `faults` the meaning of the server's exceptions, and `world` what can be asked of a server.
"""
