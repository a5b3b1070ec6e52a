"""Which published artifacts the services of tests need: versions that were run together."""

from calque.sandbox.artifacts import Artifact
from calque.sandbox.manifest import artifacts

HDFS_JARS = artifacts("""
    org.apache.hadoop:hadoop-client-minicluster:3.5.0
    commons-logging:commons-logging:1.3.5
    org.slf4j:slf4j-api:1.7.36
    org.slf4j:slf4j-simple:1.7.36
""")
"""The servers, beside the Hadoop client that pyspark ships, which has to be of the same version."""

REGISTRY_DISTRIBUTION = Artifact.parse("io.apicurio:apicurio-registry-app:2.6.13.Final:tar.gz:all")
"""Apicurio's schema registry with all that it needs; it speaks Confluent's protocol."""

DIRECTORY_JARS = artifacts("com.unboundid:unboundid-ldapsdk:7.0.3")
"""An LDAP directory in memory."""

KDC_JARS = artifacts("""
    org.apache.hadoop:hadoop-minikdc:3.5.0
    org.apache.kerby:kerb-admin:2.0.3
    org.apache.kerby:kerb-client:2.0.3
    org.apache.kerby:kerb-common:2.0.3
    org.apache.kerby:kerb-core:2.0.3
    org.apache.kerby:kerb-crypto:2.0.3
    org.apache.kerby:kerb-identity:2.0.3
    org.apache.kerby:kerb-server:2.0.3
    org.apache.kerby:kerb-simplekdc:2.0.3
    org.apache.kerby:kerb-util:2.0.3
    org.apache.kerby:kerby-asn1:2.0.3
    org.apache.kerby:kerby-config:2.0.3
    org.apache.kerby:kerby-pkix:2.0.3
    org.apache.kerby:kerby-util:2.0.3
    org.apache.kerby:kerby-xdr:2.0.3
    org.slf4j:slf4j-api:2.0.17
    org.slf4j:slf4j-simple:2.0.17
""")
"""Kerberos' key distribution center."""

SSH_JARS = artifacts("""
    org.apache.sshd:sshd-core:2.20.0
    org.apache.sshd:sshd-common:2.20.0
    net.i2p.crypto:eddsa:0.3.0
    org.slf4j:slf4j-api:2.0.17
    org.slf4j:slf4j-simple:2.0.17
""")
"""A server of SSH."""

ICEBERG_REST_JARS = artifacts("""
    org.apache.iceberg:iceberg-core:1.10.1
    org.apache.iceberg:iceberg-core:1.10.1:jar:tests
    org.apache.iceberg:iceberg-api:1.10.1
    org.apache.iceberg:iceberg-common:1.10.1
    org.apache.iceberg:iceberg-bundled-guava:1.10.1
    org.apache.httpcomponents.core5:httpcore5:5.3.6
    com.github.ben-manes.caffeine:caffeine:2.9.3
    org.xerial:sqlite-jdbc:3.50.3.0
""")
"""Iceberg's REST catalog, whose servlet is among its tests, beside the HTTP server and Hadoop that pyspark ships."""

ACTIVEMQ_JARS = artifacts("""
    org.apache.activemq:activemq-broker:6.1.8
    org.apache.activemq:activemq-client:6.1.8
    org.apache.activemq:activemq-jaas:6.1.8
    org.apache.activemq:activemq-kahadb-store:6.1.8
    org.apache.activemq:activemq-openwire-legacy:6.1.8
    org.apache.activemq:activemq-stomp:6.1.8
    org.apache.activemq.protobuf:activemq-protobuf:1.1
    jakarta.jms:jakarta.jms-api:3.1.0
    org.fusesource.hawtbuf:hawtbuf:1.11
    org.slf4j:slf4j-api:2.0.17
    org.slf4j:slf4j-simple:2.0.17
""")
"""ActiveMQ Classic's broker with its store and STOMP, without Spring, web console and JMX."""

HIVE_JARS = artifacts("""
    org.apache.hive:hive-exec:4.0.1
    org.apache.hive:hive-common:4.0.1
    org.apache.tez:tez-api:0.10.4
    org.apache.tez:tez-mapreduce:0.10.4
    org.apache.hadoop:hadoop-annotations:3.3.6
    org.apache.hadoop:hadoop-auth:3.3.6
    org.apache.hadoop:hadoop-common:3.3.6
    org.apache.hadoop:hadoop-distcp:3.3.6
    org.apache.hadoop:hadoop-hdfs:3.3.6
    org.apache.hadoop:hadoop-hdfs-client:3.3.6
    org.apache.hadoop:hadoop-mapreduce-client-common:3.3.6
    org.apache.hadoop:hadoop-mapreduce-client-core:3.3.6
    org.apache.hadoop:hadoop-mapreduce-client-jobclient:3.3.6
    org.apache.hadoop:hadoop-mapreduce-client-shuffle:3.3.6
    org.apache.hadoop:hadoop-yarn-api:3.3.6
    org.apache.hadoop:hadoop-yarn-common:3.3.6
    org.apache.hadoop.thirdparty:hadoop-shaded-guava:1.1.1
    org.apache.hadoop.thirdparty:hadoop-shaded-protobuf_3_7:1.1.1
    com.esri.geometry:esri-geometry-api:2.2.4
    com.fasterxml.jackson.core:jackson-annotations:2.16.1
    com.fasterxml.jackson.core:jackson-core:2.16.1
    com.fasterxml.jackson.core:jackson-databind:2.16.1
    com.fasterxml.woodstox:woodstox-core:5.4.0
    com.github.ben-manes.caffeine:caffeine:2.8.4
    com.google.code.findbugs:jsr305:3.0.2
    com.google.guava:guava:22.0
    com.cronutils:cron-utils:9.1.6
    com.jayway.jsonpath:json-path:2.9.0
    commons-cli:commons-cli:1.2
    commons-codec:commons-codec:1.15
    commons-collections:commons-collections:3.2.2
    commons-io:commons-io:2.12.0
    commons-logging:commons-logging:1.1.3
    javax.servlet:javax.servlet-api:3.1.0
    org.apache.avro:avro:1.7.7
    org.apache.commons:commons-collections4:4.1
    org.apache.commons:commons-compress:1.23.0
    org.apache.commons:commons-configuration2:2.8.0
    org.apache.commons:commons-lang3:3.12.0
    org.apache.commons:commons-math3:3.6.1
    org.apache.commons:commons-pool2:2.12.0
    org.apache.commons:commons-text:1.10.0
    org.apache.httpcomponents:httpclient:4.5.13
    org.apache.httpcomponents:httpcore:4.4.15
    org.apache.logging.log4j:log4j-1.2-api:2.18.0
    org.apache.logging.log4j:log4j-api:2.18.0
    org.apache.logging.log4j:log4j-core:2.18.0
    org.apache.logging.log4j:log4j-slf4j-impl:2.18.0
    org.codehaus.janino:commons-compiler:3.0.11
    org.codehaus.janino:janino:3.0.11
    org.codehaus.woodstox:stax2-api:4.2.1
    org.javassist:javassist:3.28.0-GA
    org.reflections:reflections:0.10.2
    org.slf4j:slf4j-api:1.7.30
""")
"""Hive's own driver, a client of a metastore: what statements of replication, DDL and small queries load."""

OF_SERVICES = (
    *HDFS_JARS,
    *ACTIVEMQ_JARS,
    *DIRECTORY_JARS,
    *KDC_JARS,
    *SSH_JARS,
    *ICEBERG_REST_JARS,
    REGISTRY_DISTRIBUTION,
)
"""What tests need beside the sandbox."""

OF_INTEROP = HIVE_JARS
"""What `make interop` needs beside that."""
