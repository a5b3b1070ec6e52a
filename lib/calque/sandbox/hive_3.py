"""The start of a 3.1.3 metastore inside a JVM that runs only a py4j gateway.

Its own main class binds every interface. Here its handler is served by a Thrift server over a loopback socket, on a
thread of the JVM, and the gateway is not needed any more once that runs. Users and TLS are as the main class has them.
"""

from typing import Any

from py4j.java_gateway import JavaGateway, set_field
from py4j.protocol import Py4JError

from calque.sandbox.hive_settings import MetastoreSettings
from calque.sandbox.processes import KeptProcess, PortTaken, gateway_to

_WORKER_THREADS = (8, 500)


def serve(server: KeptProcess, port: int, settings: MetastoreSettings, seconds: float) -> None:
    """Make the JVM answer Thrift calls on a loopback port. Raises `Unavailable`, or `PortTaken`, after at most
    `seconds` for the gateway."""
    gateway = gateway_to(server, seconds)
    try:
        _serve(gateway, port, settings)
    except Py4JError as error:
        cause = " ".join(str(error).splitlines()[:2])
        if "Address already in use" in cause:
            raise PortTaken(f"Port {port} is taken", "", "Try another") from error
        raise server.failure(f"failed to start: {cause}") from error
    finally:
        gateway.shutdown()


def _serve(gateway: JavaGateway, port: int, settings: MetastoreSettings) -> None:
    java: Any = gateway.jvm.java
    thrift: Any = gateway.jvm.org.apache.thrift
    hive: Any = gateway.jvm.org.apache.hadoop.hive.metastore
    configuration = hive.conf.MetastoreConf.newMetastoreConf()
    # The listener's cleaner runs once a minute; there is no setting for it.
    cleaner = java.lang.Class.forName("org.apache.hive.hcatalog.listener.DbNotificationListener$CleanerThread")
    interval = cleaner.getDeclaredField("sleepTime")
    interval.setAccessible(True)
    interval.setLong(None, round(settings.cleaner_interval * 1000))

    remote = java.lang.Class.forName("org.apache.hadoop.hive.metastore.HiveMetaStore").getDeclaredField(
        "isMetaStoreRemote"
    )
    remote.setAccessible(True)
    remote.setBoolean(None, True)  # else nobody's privileges are looked at

    handlers = java.lang.Class.forName("org.apache.hadoop.hive.metastore.HiveMetaStore$HMSHandler").getConstructors()
    (constructor,) = (candidate for candidate in handlers if candidate.getParameterCount() == 3)
    arguments = gateway.new_array(java.lang.Object, 3)
    arguments[0], arguments[1], arguments[2] = "metastore", configuration, False
    handler = hive.RetryingHMSHandler.getProxy(configuration, constructor.newInstance(arguments), True)

    options = thrift.server.TThreadPoolServer.Args(_listening(gateway, configuration, port))
    set_field(options, "minWorkerThreads", _WORKER_THREADS[0])
    set_field(options, "maxWorkerThreads", _WORKER_THREADS[1])
    if settings.kerberos is not None:
        _ask_for_tickets(gateway, configuration, handler, options)
    elif hive.conf.MetastoreConf.getBoolVar(configuration, hive.conf.MetastoreConf.ConfVars.EXECUTE_SET_UGI):
        options.processor(hive.TUGIBasedProcessor(handler))
        transports = java.lang.Class.forName(
            "org.apache.hadoop.hive.metastore.security.TUGIContainingTransport$Factory"
        )
        options.transportFactory(transports.getConstructor(gateway.new_array(java.lang.Class, 0)).newInstance(None))
    else:
        options.processor(hive.TSetIpAddressProcessor(handler))
        options.transportFactory(thrift.transport.TTransportFactory())
    # HiveMetaStore limits texts and lists of a request in the same way.
    max_message_size = hive.conf.MetastoreConf.getLongVar(
        configuration, hive.conf.MetastoreConf.ConfVars.SERVER_MAX_MESSAGE_SIZE
    )
    options.inputProtocolFactory(
        thrift.protocol.TBinaryProtocol.Factory(True, True, max_message_size, max_message_size)
    )
    options.outputProtocolFactory(thrift.protocol.TBinaryProtocol.Factory())
    server = thrift.server.TThreadPoolServer(options)
    # `EventHandler` makes a Runnable of any method, so that the JVM needs no class of ours.
    runnable = java.beans.EventHandler.create(java.lang.Class.forName("java.lang.Runnable"), server, "serve")
    java.lang.Thread(runnable).start()


def _ask_for_tickets(gateway: JavaGateway, configuration: Any, handler: Any, options: Any) -> None:
    """Have the server take Kerberos tickets, as HiveMetaStore does, except that there are no delegation tokens."""
    hive: Any = gateway.jvm.org.apache.hadoop.hive.metastore
    text, names = hive.conf.MetastoreConf.getVar, hive.conf.MetastoreConf.ConfVars
    bridge = hive.security.HadoopThriftAuthBridge.getBridge().createServer(
        text(configuration, names.KERBEROS_KEYTAB_FILE),
        text(configuration, names.KERBEROS_PRINCIPAL),
        text(configuration, names.CLIENT_KERBEROS_PRINCIPAL),
    )
    protection = hive.utils.MetaStoreUtils.getMetaStoreSaslProperties(configuration, False)
    options.transportFactory(bridge.createTransportFactory(protection))
    options.processor(bridge.wrapProcessor(hive.api.ThriftHiveMetastore.Processor(handler)))


def _listening(gateway: JavaGateway, configuration: Any, port: int) -> Any:
    java: Any = gateway.jvm.java
    hive: Any = gateway.jvm.org.apache.hadoop.hive.metastore
    settings, names = hive.conf.MetastoreConf, hive.conf.MetastoreConf.ConfVars
    if settings.getBoolVar(configuration, names.USE_SSL):
        return hive.utils.SecurityUtils.getServerSSLSocket(
            "127.0.0.1",
            port,
            settings.getVar(configuration, names.SSL_KEYSTORE_PATH),
            settings.getPassword(configuration, names.SSL_KEYSTORE_PASSWORD),
            java.util.ArrayList(),
        )
    loopback = java.net.InetAddress.getByName("127.0.0.1")
    return gateway.jvm.org.apache.thrift.transport.TServerSocket(java.net.ServerSocket(port, 100, loopback))
