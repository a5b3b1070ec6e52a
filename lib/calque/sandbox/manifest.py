"""Which published artifacts each real service and Spark's class path need: versions that were run together."""

from calque.sandbox.artifacts import Artifact


def _artifacts(listing: str) -> tuple[Artifact, ...]:
    return tuple(Artifact.parse(line) for line in listing.split())


HIVE_3_DISTRIBUTION = Artifact.parse("org.apache.hive:hive-standalone-metastore:3.1.3:tar.gz:bin")
"""The 3.1.3 server's jars and its database schemas."""

HIVE_4_SCHEMAS = Artifact.parse("org.apache.hive:hive-standalone-metastore-server:4.0.1:tar.gz:bin")
"""The newest published archive with the 4.x database schemas; nothing else of it is used."""

HIVE_3_JARS = _artifacts("""
    org.apache.hive.hcatalog:hive-hcatalog-server-extensions:3.1.3
    org.codehaus.jackson:jackson-core-asl:1.9.13
    org.codehaus.jackson:jackson-mapper-asl:1.9.13
    org.slf4j:slf4j-api:1.7.30
    commons-collections:commons-collections:3.2.2
    commons-logging:commons-logging:1.1.3
    org.postgresql:postgresql:42.7.4
""")
"""What the distribution and pyspark's Hadoop client lack."""

HIVE_4_JARS = _artifacts("""
    org.apache.hive:hive-exec:4.2.0
    org.apache.hive.hcatalog:hive-hcatalog-server-extensions:4.2.0
    org.apache.hadoop:hadoop-hdfs:3.5.0
    org.postgresql:postgresql:42.7.4
    org.datanucleus:datanucleus-core:6.0.10
    org.datanucleus:datanucleus-api-jdo:6.0.3
    org.datanucleus:datanucleus-rdbms:6.0.10
    org.datanucleus:javax.jdo:3.2.0-release
    com.zaxxer:HikariCP:4.0.3
    org.springframework:spring-core:5.3.39
    org.springframework:spring-jcl:5.3.39
    org.springframework:spring-beans:5.3.39
    org.springframework:spring-tx:5.3.39
    org.springframework:spring-jdbc:5.3.39
    org.slf4j:slf4j-api:1.7.30
    org.apache.logging.log4j:log4j-api:2.24.3
    org.apache.logging.log4j:log4j-core:2.24.3
    org.apache.logging.log4j:log4j-slf4j-impl:2.24.3
    org.apache.logging.log4j:log4j-1.2-api:2.24.3
    commons-logging:commons-logging:1.1.3
    commons-cli:commons-cli:1.5.0
    commons-codec:commons-codec:1.15
    com.esri.geometry:esri-geometry-api:2.2.4
    org.apache.commons:commons-math3:3.6.1
    commons-io:commons-io:2.16.1
    commons-beanutils:commons-beanutils:1.11.0
    commons-collections:commons-collections:3.2.2
    org.apache.commons:commons-collections4:4.4
    org.apache.commons:commons-dbcp2:2.12.0
    org.apache.commons:commons-pool2:2.12.0
    org.apache.commons:commons-jexl3:3.3
    com.github.ben-manes.caffeine:caffeine:2.8.4
    io.dropwizard.metrics:metrics-core:3.1.0
    io.dropwizard.metrics:metrics-jvm:3.1.0
    io.dropwizard.metrics:metrics-json:3.1.0
    com.github.joshelser:dropwizard-metrics-hadoop-metrics2-reporter:0.1.2
    org.apache.curator:curator-framework:5.7.1
    org.apache.curator:curator-client:5.7.1
    org.apache.curator:curator-recipes:5.7.1
    org.apache.zookeeper:zookeeper:3.8.4
    javolution:javolution:5.5.1
    org.antlr:antlr-runtime:3.5.2
    org.antlr:antlr4-runtime:4.9.3
    com.google.guava:guava:22.0
    com.google.protobuf:protobuf-java:3.25.5
    com.fasterxml.jackson.core:jackson-databind:2.16.1
    com.fasterxml.jackson.core:jackson-core:2.16.1
    com.fasterxml.jackson.core:jackson-annotations:2.16.1
    org.eclipse.jetty:jetty-server:9.4.57.v20241219
    org.eclipse.jetty:jetty-servlet:9.4.57.v20241219
    org.eclipse.jetty:jetty-util:9.4.57.v20241219
    org.eclipse.jetty:jetty-http:9.4.57.v20241219
    org.eclipse.jetty:jetty-io:9.4.57.v20241219
    org.eclipse.jetty:jetty-security:9.4.57.v20241219
    javax.servlet:javax.servlet-api:3.1.0
    org.pac4j:pac4j-core:4.5.8
    com.nimbusds:nimbus-jose-jwt:9.37.4
    com.github.stephenc.jcip:jcip-annotations:1.0-1
    org.apache.httpcomponents:httpcore:4.4.15
    org.apache.httpcomponents:httpclient:4.5.13
    org.apache.thrift:libfb303:0.9.3
    com.google.code.gson:gson:2.11.0
    javax.transaction:javax.transaction-api:1.3
""")
"""A flat list: what hive-exec asks for transitively can't be resolved on Java 17 (`jdk.tools`)."""

DELTA_JARS = _artifacts("""
    io.delta:delta-spark_4.2_2.13:4.4.0
    io.delta:delta-storage:4.4.0
    io.delta:delta-kernel-api:4.4.0
    io.delta:delta-kernel-defaults:4.4.0
    io.delta:delta-kernel-unitycatalog:4.4.0
    io.unitycatalog:unitycatalog-hadoop:0.6.0
""")
"""What Delta needs and pyspark lacks; a second Hadoop client or Jackson would break the session."""

KAFKA_JARS = _artifacts("""
    org.apache.kafka:kafka_2.13:4.3.1
    org.apache.kafka:kafka-clients:4.3.1
    org.apache.kafka:kafka-coordinator-common:4.3.1
    org.apache.kafka:kafka-group-coordinator:4.3.1
    org.apache.kafka:kafka-group-coordinator-api:4.3.1
    org.apache.kafka:kafka-metadata:4.3.1
    org.apache.kafka:kafka-raft:4.3.1
    org.apache.kafka:kafka-server:4.3.1
    org.apache.kafka:kafka-server-common:4.3.1
    org.apache.kafka:kafka-share-coordinator:4.3.1
    org.apache.kafka:kafka-storage:4.3.1
    org.apache.kafka:kafka-storage-api:4.3.1
    org.apache.kafka:kafka-tools-api:4.3.1
    org.apache.kafka:kafka-transaction-coordinator:4.3.1
    org.scala-lang:scala-library:2.13.18
    org.scala-lang:scala-reflect:2.13.18
    com.typesafe.scala-logging:scala-logging_2.13:3.9.6
    com.fasterxml.jackson.core:jackson-annotations:2.21
    com.fasterxml.jackson.core:jackson-core:2.21.2
    com.fasterxml.jackson.core:jackson-databind:2.21.2
    com.fasterxml.jackson.dataformat:jackson-dataformat-csv:2.21.2
    com.fasterxml.jackson.dataformat:jackson-dataformat-yaml:2.21.2
    com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.21.2
    org.yaml:snakeyaml:2.5
    com.github.luben:zstd-jni:1.5.6-10
    at.yawk.lz4:lz4-java:1.10.2
    org.xerial.snappy:snappy-java:1.1.10.7
    com.github.ben-manes.caffeine:caffeine:3.2.0
    com.dynatrace.hash4j:hash4j:0.22.0
    com.google.re2j:re2j:1.8
    com.yammer.metrics:metrics-core:2.2.0
    org.hdrhistogram:HdrHistogram:2.2.2
    org.pcollections:pcollections:4.0.2
    org.jspecify:jspecify:1.0.0
    org.bitbucket.b_c:jose4j:0.9.6
    net.sf.jopt-simple:jopt-simple:5.0.4
    net.sourceforge.argparse4j:argparse4j:0.7.0
    commons-validator:commons-validator:1.10.1
    commons-beanutils:commons-beanutils:1.11.0
    commons-digester:commons-digester:2.1
    commons-collections:commons-collections:3.2.2
    commons-logging:commons-logging:1.3.5
    org.apache.logging.log4j:log4j-api:2.25.4
    org.apache.logging.log4j:log4j-core:2.25.4
    org.slf4j:slf4j-api:1.7.36
    org.slf4j:slf4j-simple:1.7.36
""")
"""The broker and what it depends on, and a logger that writes to standard error."""

HDFS_JARS = _artifacts("""
    org.apache.hadoop:hadoop-client-minicluster:3.5.0
    commons-logging:commons-logging:1.3.5
    org.slf4j:slf4j-api:1.7.36
    org.slf4j:slf4j-simple:1.7.36
""")
"""The servers, beside the Hadoop client that pyspark ships, which has to be of the same version."""

REGISTRY_DISTRIBUTION = Artifact.parse("io.apicurio:apicurio-registry-app:2.6.13.Final:tar.gz:all")
"""Apicurio's schema registry with all that it needs; it speaks Confluent's protocol."""

DIRECTORY_JARS = _artifacts("com.unboundid:unboundid-ldapsdk:7.0.3")
"""An LDAP directory in memory."""

KDC_JARS = _artifacts("""
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

SSH_JARS = _artifacts("""
    org.apache.sshd:sshd-core:2.20.0
    org.apache.sshd:sshd-common:2.20.0
    net.i2p.crypto:eddsa:0.3.0
    org.slf4j:slf4j-api:2.0.17
    org.slf4j:slf4j-simple:2.0.17
""")
"""A server of SSH."""

ICEBERG_REST_JARS = _artifacts("""
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

ACTIVEMQ_JARS = _artifacts("""
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

HIVE_JARS = _artifacts("""
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

OF_THE_DEMO = (HIVE_3_DISTRIBUTION, *HIVE_3_JARS, *DELTA_JARS, *KAFKA_JARS)
"""What `calque run` and `calque demo` need."""

OF_TESTS = (
    HIVE_4_SCHEMAS,
    *HIVE_4_JARS,
    *HDFS_JARS,
    *ACTIVEMQ_JARS,
    *DIRECTORY_JARS,
    *KDC_JARS,
    *SSH_JARS,
    *ICEBERG_REST_JARS,
    REGISTRY_DISTRIBUTION,
)
"""What tests need beside it: four times as much."""

OF_INTEROP = HIVE_JARS
"""What `make interop` needs beside that."""
