CREATE TABLE floe_revision (
    version_num VARCHAR(32) NOT NULL, 
    CONSTRAINT floe_revision_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE TABLE project (
    project_id INTEGER NOT NULL, 
    name VARCHAR(200) NOT NULL, 
    version VARCHAR(50), 
    description TEXT, 
    timezone VARCHAR(60) NOT NULL, 
    content_hash VARCHAR(64) NOT NULL, 
    created_at DATETIME NOT NULL, 
    updated_at DATETIME, 
    CONSTRAINT pk_project PRIMARY KEY (project_id), 
    CONSTRAINT uq_project_name UNIQUE (name)
);

CREATE TABLE sla (
    sla_id INTEGER NOT NULL, 
    name VARCHAR(650) NOT NULL, 
    description TEXT, 
    sla_window_sec INTEGER, 
    due VARCHAR(8), 
    zone VARCHAR(60), 
    calendar VARCHAR(100), 
    day_offset INTEGER, 
    escalation_json TEXT, 
    created_at DATETIME NOT NULL, 
    updated_at DATETIME, 
    CONSTRAINT pk_sla PRIMARY KEY (sla_id), 
    CONSTRAINT uq_sla_name UNIQUE (name)
);

CREATE TABLE dataset (
    dataset_id INTEGER NOT NULL, 
    namespace VARCHAR(200) NOT NULL, 
    name VARCHAR(300) NOT NULL, 
    full_name VARCHAR(600) NOT NULL, 
    description TEXT, 
    category VARCHAR(100), 
    default_format VARCHAR(50), 
    owner_team VARCHAR(200), 
    owner_email VARCHAR(200), 
    default_sla_id INTEGER, 
    status VARCHAR(20) NOT NULL, 
    project_id INTEGER, 
    timezone VARCHAR(60), 
    needs_validation CHAR(1) NOT NULL, 
    schema_hash VARCHAR(64), 
    declaration_json TEXT, 
    created_by VARCHAR(100), 
    created_at DATETIME NOT NULL, 
    updated_at DATETIME, 
    CONSTRAINT pk_dataset PRIMARY KEY (dataset_id), 
    CONSTRAINT fk_dataset_default_sla_id FOREIGN KEY(default_sla_id) REFERENCES sla (sla_id), 
    CONSTRAINT fk_dataset_project_id FOREIGN KEY(project_id) REFERENCES project (project_id)
);

CREATE UNIQUE INDEX idx_dataset_fullname ON dataset (full_name);

CREATE INDEX idx_dataset_name ON dataset (name);

CREATE INDEX idx_dataset_project ON dataset (project_id);

CREATE TABLE process (
    process_id INTEGER NOT NULL, 
    process_key VARCHAR(600) NOT NULL, 
    name VARCHAR(300), 
    description TEXT, 
    technology VARCHAR(50), 
    team VARCHAR(200), 
    owner_email VARCHAR(200), 
    trigger_mode VARCHAR(20) NOT NULL, 
    status VARCHAR(20) NOT NULL, 
    sla_id INTEGER, 
    project_id INTEGER, 
    declaration_json TEXT, 
    created_at DATETIME NOT NULL, 
    updated_at DATETIME, 
    CONSTRAINT pk_process PRIMARY KEY (process_id), 
    CONSTRAINT fk_process_sla_id FOREIGN KEY(sla_id) REFERENCES sla (sla_id), 
    CONSTRAINT fk_process_project_id FOREIGN KEY(project_id) REFERENCES project (project_id)
);

CREATE UNIQUE INDEX idx_process_key ON process (process_key);

CREATE INDEX idx_process_name ON process (name);

CREATE INDEX idx_process_project ON process (project_id);

CREATE TABLE dataset_tag (
    dataset_id INTEGER NOT NULL, 
    tag VARCHAR(200) NOT NULL, 
    CONSTRAINT pk_dataset_tag PRIMARY KEY (dataset_id, tag), 
    CONSTRAINT fk_dataset_tag_dataset_id FOREIGN KEY(dataset_id) REFERENCES dataset (dataset_id)
);

CREATE INDEX idx_dataset_tag ON dataset_tag (tag);

CREATE TABLE dataset_alias (
    namespace VARCHAR(200) NOT NULL, 
    name VARCHAR(300) NOT NULL, 
    dataset_id INTEGER NOT NULL, 
    created_at DATETIME NOT NULL, 
    CONSTRAINT pk_dataset_alias PRIMARY KEY (namespace, name), 
    CONSTRAINT fk_dataset_alias_dataset_id FOREIGN KEY(dataset_id) REFERENCES dataset (dataset_id)
);

CREATE INDEX idx_dataset_alias_dataset ON dataset_alias (dataset_id);

CREATE TABLE dataset_schema (
    schema_hash VARCHAR(64) NOT NULL, 
    column_order INTEGER NOT NULL, 
    column_name VARCHAR(200) NOT NULL, 
    column_type VARCHAR(1000) NOT NULL, 
    nullable CHAR(1) NOT NULL, 
    column_metadata TEXT, 
    CONSTRAINT pk_dataset_schema PRIMARY KEY (schema_hash, column_order)
);

CREATE TABLE dataset_version (
    dataset_version_id INTEGER NOT NULL, 
    dataset_id INTEGER NOT NULL, 
    version_tag VARCHAR(300) NOT NULL, 
    business_date DATE, 
    partition_key VARCHAR(300), 
    seq INTEGER NOT NULL, 
    state VARCHAR(20) NOT NULL, 
    path VARCHAR(1000), 
    row_count BIGINT, 
    size_bytes BIGINT, 
    checksum VARCHAR(200), 
    schema_hash VARCHAR(64), 
    produced_by_run_id CHAR(36), 
    produced_at DATETIME NOT NULL, 
    legal_hold CHAR(1) NOT NULL, 
    metadata_json TEXT, 
    CONSTRAINT pk_dataset_version PRIMARY KEY (dataset_version_id), 
    CONSTRAINT unq_ds_ver UNIQUE (dataset_id, version_tag), 
    CONSTRAINT fk_dataset_version_dataset_id FOREIGN KEY(dataset_id) REFERENCES dataset (dataset_id)
);

CREATE INDEX idx_version_produced ON dataset_version (dataset_id, produced_at);

CREATE INDEX idx_version_date ON dataset_version (dataset_id, business_date, state);

CREATE INDEX idx_version_run ON dataset_version (produced_by_run_id);

CREATE TABLE dataset_event (
    dataset_event_id INTEGER NOT NULL, 
    dataset_id INTEGER NOT NULL, 
    dataset_version_id INTEGER, 
    event_type VARCHAR(50) NOT NULL, 
    actor VARCHAR(200), 
    occurred_at DATETIME NOT NULL, 
    detail_json TEXT, 
    CONSTRAINT pk_dataset_event PRIMARY KEY (dataset_event_id), 
    CONSTRAINT fk_dataset_event_dataset_id FOREIGN KEY(dataset_id) REFERENCES dataset (dataset_id), 
    CONSTRAINT fk_dataset_event_dataset_version_id FOREIGN KEY(dataset_version_id) REFERENCES dataset_version (dataset_version_id)
);

CREATE INDEX idx_dataset_event ON dataset_event (dataset_id, occurred_at);

CREATE TABLE process_run (
    run_id INTEGER NOT NULL, 
    run_uuid CHAR(36) NOT NULL, 
    process_id INTEGER NOT NULL, 
    business_date DATE, 
    partition_key VARCHAR(300), 
    start_ts DATETIME, 
    end_ts DATETIME, 
    status VARCHAR(20) NOT NULL, 
    attempt INTEGER NOT NULL, 
    parent_run_uuid CHAR(36), 
    log_location VARCHAR(1000), 
    historical CHAR(1) NOT NULL, 
    facets_json TEXT, 
    facets_at DATETIME, 
    saw_success CHAR(1) NOT NULL, 
    saw_failure CHAR(1) NOT NULL, 
    created_at DATETIME NOT NULL, 
    CONSTRAINT pk_process_run PRIMARY KEY (run_id), 
    CONSTRAINT uq_process_run_run_uuid UNIQUE (run_uuid), 
    CONSTRAINT fk_process_run_process_id FOREIGN KEY(process_id) REFERENCES process (process_id)
);

CREATE INDEX idx_process_run_process_ts ON process_run (process_id, start_ts);

CREATE INDEX idx_process_run_date ON process_run (process_id, business_date);

CREATE INDEX idx_process_run_parent ON process_run (parent_run_uuid);

CREATE INDEX idx_process_run_created ON process_run (created_at);

CREATE TABLE run_input (
    run_id INTEGER NOT NULL, 
    dataset_id INTEGER NOT NULL, 
    version_tag VARCHAR(300) NOT NULL, 
    dataset_version_id INTEGER, 
    CONSTRAINT pk_run_input PRIMARY KEY (run_id, dataset_id, version_tag), 
    CONSTRAINT fk_run_input_run_id FOREIGN KEY(run_id) REFERENCES process_run (run_id), 
    CONSTRAINT fk_run_input_dataset_id FOREIGN KEY(dataset_id) REFERENCES dataset (dataset_id), 
    CONSTRAINT fk_run_input_dataset_version_id FOREIGN KEY(dataset_version_id) REFERENCES dataset_version (dataset_version_id)
);

CREATE INDEX idx_run_input_dataset ON run_input (dataset_id);

CREATE INDEX idx_run_input_version ON run_input (dataset_version_id);

CREATE TABLE run_step (
    run_step_id INTEGER NOT NULL, 
    run_id INTEGER NOT NULL, 
    step_name VARCHAR(200) NOT NULL, 
    step_order INTEGER NOT NULL, 
    depends_on_json TEXT, 
    status VARCHAR(20) NOT NULL, 
    start_ts DATETIME, 
    end_ts DATETIME, 
    row_count BIGINT, 
    detail_json TEXT, 
    CONSTRAINT pk_run_step PRIMARY KEY (run_step_id), 
    CONSTRAINT uq_run_step_run_id_step_name UNIQUE (run_id, step_name), 
    CONSTRAINT fk_run_step_run_id FOREIGN KEY(run_id) REFERENCES process_run (run_id)
);

CREATE TABLE lineage_edge (
    edge_id INTEGER NOT NULL, 
    source_type VARCHAR(20) NOT NULL, 
    source_id INTEGER NOT NULL, 
    target_type VARCHAR(20) NOT NULL, 
    target_id INTEGER NOT NULL, 
    edge_role VARCHAR(30) NOT NULL, 
    known_by VARCHAR(20) NOT NULL, 
    transform_meta TEXT, 
    first_seen DATETIME NOT NULL, 
    last_seen DATETIME NOT NULL, 
    ended_at DATETIME, 
    created_at DATETIME NOT NULL, 
    CONSTRAINT pk_lineage_edge PRIMARY KEY (edge_id)
);

CREATE UNIQUE INDEX idx_lineage_src ON lineage_edge (source_type, source_id, target_type, target_id, edge_role, known_by);

CREATE INDEX idx_lineage_tgt ON lineage_edge (target_type, target_id, source_type, source_id);

CREATE TABLE column_edge (
    column_edge_id INTEGER NOT NULL, 
    source_dataset_id INTEGER NOT NULL, 
    source_column VARCHAR(200) NOT NULL, 
    target_dataset_id INTEGER NOT NULL, 
    target_column VARCHAR(200) NOT NULL, 
    process_id INTEGER NOT NULL, 
    kind VARCHAR(20) NOT NULL, 
    lineage_hash VARCHAR(64) NOT NULL, 
    CONSTRAINT pk_column_edge PRIMARY KEY (column_edge_id), 
    CONSTRAINT uq_column_edge UNIQUE (target_dataset_id, target_column, source_dataset_id, source_column, process_id, kind, lineage_hash)
);

CREATE INDEX idx_column_edge_source ON column_edge (source_dataset_id, source_column);

CREATE INDEX idx_column_edge_lineage ON column_edge (process_id, target_dataset_id);

CREATE TABLE column_sighting (
    process_id INTEGER NOT NULL, 
    dataset_id INTEGER NOT NULL, 
    lineage_hash VARCHAR(64) NOT NULL, 
    first_seen DATETIME NOT NULL, 
    last_seen DATETIME NOT NULL, 
    CONSTRAINT pk_column_sighting PRIMARY KEY (process_id, dataset_id, lineage_hash)
);

CREATE INDEX idx_column_sighting_dataset ON column_sighting (dataset_id);

CREATE TABLE schema_sighting (
    dataset_id INTEGER NOT NULL, 
    schema_hash VARCHAR(64) NOT NULL, 
    first_seen DATETIME NOT NULL, 
    last_seen DATETIME NOT NULL, 
    CONSTRAINT pk_schema_sighting PRIMARY KEY (dataset_id, schema_hash)
);

CREATE TABLE observed_facet (
    owner_type VARCHAR(20) NOT NULL, 
    owner_id INTEGER NOT NULL, 
    facet VARCHAR(100) NOT NULL, 
    facet_hash VARCHAR(64) NOT NULL, 
    seen_at DATETIME NOT NULL, 
    body TEXT NOT NULL, 
    CONSTRAINT pk_observed_facet PRIMARY KEY (owner_type, owner_id, facet)
);

CREATE TABLE quality_check_def (
    qdef_id INTEGER NOT NULL, 
    dataset_id INTEGER NOT NULL, 
    name VARCHAR(200) NOT NULL, 
    kind VARCHAR(50) NOT NULL, 
    severity VARCHAR(20) NOT NULL, 
    sql_expression TEXT, 
    expected_result TEXT, 
    parameters_json TEXT, 
    active CHAR(1) NOT NULL, 
    created_at DATETIME NOT NULL, 
    updated_at DATETIME, 
    CONSTRAINT pk_quality_check_def PRIMARY KEY (qdef_id), 
    CONSTRAINT uq_quality_check_def_dataset_id_name UNIQUE (dataset_id, name), 
    CONSTRAINT fk_quality_check_def_dataset_id FOREIGN KEY(dataset_id) REFERENCES dataset (dataset_id)
);

CREATE TABLE quality_check_result (
    qres_id INTEGER NOT NULL, 
    qdef_id INTEGER NOT NULL, 
    dataset_version_id INTEGER, 
    run_id INTEGER, 
    executed_at DATETIME NOT NULL, 
    status VARCHAR(20) NOT NULL, 
    failed_rows BIGINT, 
    detail_json TEXT, 
    CONSTRAINT pk_quality_check_result PRIMARY KEY (qres_id), 
    CONSTRAINT fk_quality_check_result_qdef_id FOREIGN KEY(qdef_id) REFERENCES quality_check_def (qdef_id), 
    CONSTRAINT fk_quality_check_result_dataset_version_id FOREIGN KEY(dataset_version_id) REFERENCES dataset_version (dataset_version_id), 
    CONSTRAINT fk_quality_check_result_run_id FOREIGN KEY(run_id) REFERENCES process_run (run_id)
);

CREATE INDEX idx_check_result_def ON quality_check_result (qdef_id, executed_at);

CREATE INDEX idx_check_result_version ON quality_check_result (dataset_version_id);

CREATE TABLE dataset_registration (
    reg_id INTEGER NOT NULL, 
    dataset_id INTEGER NOT NULL, 
    submitted_by VARCHAR(200) NOT NULL, 
    submitted_at DATETIME NOT NULL, 
    status VARCHAR(20) NOT NULL, 
    reviewer VARCHAR(200), 
    reviewed_at DATETIME, 
    review_comment TEXT, 
    request_json TEXT, 
    CONSTRAINT pk_dataset_registration PRIMARY KEY (reg_id), 
    CONSTRAINT fk_dataset_registration_dataset_id FOREIGN KEY(dataset_id) REFERENCES dataset (dataset_id)
);

CREATE INDEX idx_registration_status ON dataset_registration (status, submitted_at);

CREATE INDEX idx_registration_dataset ON dataset_registration (dataset_id);

CREATE TABLE principal (
    principal_id INTEGER NOT NULL, 
    name VARCHAR(200) NOT NULL, 
    kind VARCHAR(20) NOT NULL, 
    email VARCHAR(200), 
    team VARCHAR(200), 
    created_at DATETIME NOT NULL, 
    disabled_at DATETIME, 
    CONSTRAINT pk_principal PRIMARY KEY (principal_id), 
    CONSTRAINT uq_principal_name UNIQUE (name)
);

CREATE TABLE access_token (
    token_id INTEGER NOT NULL, 
    principal_id INTEGER NOT NULL, 
    token_hash VARCHAR(64) NOT NULL, 
    token_start VARCHAR(20) NOT NULL, 
    scopes VARCHAR(300) NOT NULL, 
    created_at DATETIME NOT NULL, 
    expires_at DATETIME, 
    last_used_at DATETIME, 
    revoked_at DATETIME, 
    CONSTRAINT pk_access_token PRIMARY KEY (token_id), 
    CONSTRAINT uq_access_token_token_hash UNIQUE (token_hash), 
    CONSTRAINT fk_access_token_principal_id FOREIGN KEY(principal_id) REFERENCES principal (principal_id)
);

CREATE INDEX idx_access_token_principal ON access_token (principal_id);

CREATE TABLE role_grant (
    principal_id INTEGER NOT NULL, 
    role VARCHAR(30) NOT NULL, 
    scope VARCHAR(300) NOT NULL, 
    granted_by VARCHAR(200), 
    granted_at DATETIME NOT NULL, 
    CONSTRAINT pk_role_grant PRIMARY KEY (principal_id, role, scope), 
    CONSTRAINT fk_role_grant_principal_id FOREIGN KEY(principal_id) REFERENCES principal (principal_id)
);

CREATE TABLE audit_log (
    audit_id INTEGER NOT NULL, 
    occurred_at DATETIME NOT NULL, 
    actor VARCHAR(200) NOT NULL, 
    action VARCHAR(100) NOT NULL, 
    object_type VARCHAR(50) NOT NULL, 
    object_key VARCHAR(600) NOT NULL, 
    before_json TEXT, 
    after_json TEXT, 
    reason TEXT, 
    CONSTRAINT pk_audit_log PRIMARY KEY (audit_id)
);

CREATE INDEX idx_audit_object ON audit_log (object_type, object_key, occurred_at);

CREATE INDEX idx_audit_time ON audit_log (occurred_at);

CREATE TABLE lease (
    name VARCHAR(300) NOT NULL, 
    holder VARCHAR(300) NOT NULL, 
    fence BIGINT NOT NULL, 
    acquired_at DATETIME NOT NULL, 
    expires_at DATETIME NOT NULL, 
    CONSTRAINT pk_lease PRIMARY KEY (name)
);

CREATE TABLE run_event (
    event_id INTEGER NOT NULL, 
    event_day DATE NOT NULL, 
    event_hash VARCHAR(64) NOT NULL, 
    event_time DATETIME NOT NULL, 
    event_type VARCHAR(50) NOT NULL, 
    run_uuid CHAR(36), 
    process_key VARCHAR(600), 
    payload_json BLOB NOT NULL, 
    payload_codec VARCHAR(10) NOT NULL, 
    historical CHAR(1) NOT NULL, 
    received_at DATETIME NOT NULL, 
    CONSTRAINT pk_run_event PRIMARY KEY (event_id), 
    CONSTRAINT uq_run_event_event_day_event_hash UNIQUE (event_day, event_hash)
);

CREATE INDEX idx_event_runuuid ON run_event (run_uuid);

CREATE INDEX idx_event_process ON run_event (process_key, event_time);

CREATE TABLE import_state (
    source VARCHAR(600) NOT NULL, 
    done_lines BIGINT NOT NULL, 
    done_bytes BIGINT NOT NULL, 
    rejected_lines BIGINT NOT NULL, 
    started_by VARCHAR(200), 
    updated_at DATETIME NOT NULL, 
    CONSTRAINT pk_import_state PRIMARY KEY (source)
);

CREATE TABLE change (
    change_position BIGINT NOT NULL, 
    kind VARCHAR(50) NOT NULL, 
    dataset_id INTEGER, 
    dataset_version_id INTEGER, 
    process_id INTEGER, 
    run_id INTEGER, 
    business_date DATE, 
    partition_key VARCHAR(300), 
    occurred_at DATETIME NOT NULL, 
    detail_json TEXT, 
    CONSTRAINT pk_change PRIMARY KEY (change_position), 
    CONSTRAINT fk_change_dataset_id FOREIGN KEY(dataset_id) REFERENCES dataset (dataset_id), 
    CONSTRAINT fk_change_dataset_version_id FOREIGN KEY(dataset_version_id) REFERENCES dataset_version (dataset_version_id), 
    CONSTRAINT fk_change_process_id FOREIGN KEY(process_id) REFERENCES process (process_id), 
    CONSTRAINT fk_change_run_id FOREIGN KEY(run_id) REFERENCES process_run (run_id)
);

CREATE TABLE change_head (
    head_id INTEGER NOT NULL, 
    last_position BIGINT NOT NULL, 
    CONSTRAINT pk_change_head PRIMARY KEY (head_id)
);

INSERT INTO change_head (head_id, last_position) VALUES (1, 0);

CREATE TABLE change_cursor (
    reader VARCHAR(200) NOT NULL, 
    change_position BIGINT NOT NULL, 
    updated_at DATETIME NOT NULL, 
    CONSTRAINT pk_change_cursor PRIMARY KEY (reader)
);

CREATE VIEW dataset_version_schema (schema_id, dataset_version_id, column_order, column_name, column_type, nullable, column_metadata) AS SELECT s.schema_hash, v.dataset_version_id, s.column_order, s.column_name, s.column_type, s.nullable, s.column_metadata FROM dataset_version v JOIN dataset_schema s ON s.schema_hash = v.schema_hash;

CREATE VIRTUAL TABLE dataset_search USING fts5(name, tags, owner, columns, description, prefix='2 3');

INSERT INTO floe_revision (version_num) VALUES ('0001') RETURNING version_num;

-- Running upgrade 0001 -> 0002

CREATE TABLE column_edge_aside (
    target_dataset_id INTEGER NOT NULL, 
    target_column VARCHAR(200) NOT NULL, 
    source_dataset_id INTEGER NOT NULL, 
    source_column VARCHAR(200) NOT NULL, 
    process_id INTEGER NOT NULL, 
    kind VARCHAR(20) NOT NULL, 
    lineage_hash VARCHAR(64) NOT NULL
);

INSERT INTO column_edge_aside (target_dataset_id, target_column, source_dataset_id, source_column, process_id, kind, lineage_hash) SELECT target_dataset_id, target_column, source_dataset_id, source_column, process_id, kind, lineage_hash FROM column_edge;

DROP TABLE column_edge;

CREATE TABLE column_edge (
    target_dataset_id INTEGER NOT NULL, 
    target_column VARCHAR(200) NOT NULL, 
    source_dataset_id INTEGER NOT NULL, 
    source_column VARCHAR(200) NOT NULL, 
    process_id INTEGER NOT NULL, 
    kind VARCHAR(20) NOT NULL, 
    lineage_hash VARCHAR(64) NOT NULL, 
    CONSTRAINT pk_column_edge PRIMARY KEY (target_dataset_id, target_column, source_dataset_id, source_column, process_id, kind, lineage_hash)
);

CREATE INDEX idx_column_edge_source ON column_edge (source_dataset_id, source_column);

INSERT INTO column_edge (target_dataset_id, target_column, source_dataset_id, source_column, process_id, kind, lineage_hash) SELECT target_dataset_id, target_column, source_dataset_id, source_column, process_id, kind, lineage_hash FROM column_edge_aside;

DROP TABLE column_edge_aside;

DROP INDEX idx_dataset_project;

CREATE INDEX idx_dataset_project ON dataset (project_id) WHERE project_id IS NOT NULL;

DROP INDEX idx_process_project;

CREATE INDEX idx_process_project ON process (project_id) WHERE project_id IS NOT NULL;

DROP INDEX idx_process_run_parent;

CREATE INDEX idx_process_run_parent ON process_run (parent_run_uuid) WHERE parent_run_uuid IS NOT NULL;

DROP INDEX idx_run_input_version;

CREATE INDEX idx_run_input_version ON run_input (dataset_version_id) WHERE dataset_version_id IS NOT NULL;

UPDATE floe_revision SET version_num='0002' WHERE floe_revision.version_num = '0001';

-- Running upgrade 0002 -> 0003

ALTER TABLE dataset ADD COLUMN curated CHAR(1) DEFAULT 'N' NOT NULL;

UPDATE dataset SET curated = 'Y' WHERE dataset_id IN (SELECT dataset_id FROM dataset_registration) OR full_name IN (SELECT object_key FROM audit_log WHERE action = 'dataset.update');

UPDATE floe_revision SET version_num='0003' WHERE floe_revision.version_num = '0002';

-- Running upgrade 0003 -> 0004

CREATE TABLE session (
    session_id INTEGER NOT NULL, 
    principal_id INTEGER NOT NULL, 
    token_id INTEGER, 
    secret_hash VARCHAR(64) NOT NULL, 
    scopes VARCHAR(300) NOT NULL, 
    browser VARCHAR(200), 
    created_at DATETIME NOT NULL, 
    opened_at DATETIME, 
    expires_at DATETIME NOT NULL, 
    last_used_at DATETIME, 
    revoked_at DATETIME, 
    CONSTRAINT pk_session PRIMARY KEY (session_id), 
    CONSTRAINT fk_session_principal_id FOREIGN KEY(principal_id) REFERENCES principal (principal_id), 
    CONSTRAINT fk_session_token_id FOREIGN KEY(token_id) REFERENCES access_token (token_id), 
    CONSTRAINT uq_session_secret_hash UNIQUE (secret_hash)
);

CREATE INDEX idx_session_principal ON session (principal_id);

CREATE INDEX idx_session_token ON session (token_id);

UPDATE floe_revision SET version_num='0004' WHERE floe_revision.version_num = '0003';

-- Running upgrade 0004 -> 0005

ALTER TABLE dataset ADD COLUMN floe_writes CHAR(1) DEFAULT 'N' NOT NULL;

ALTER TABLE process_run ADD COLUMN own CHAR(1) DEFAULT 'N' NOT NULL;

UPDATE process_run SET own = 'Y' WHERE process_id IN (SELECT process_id FROM process WHERE process_key LIKE 'floe/%' OR process_key LIKE 'dbt/%' OR process_key LIKE 'dagster/%');

UPDATE dataset SET floe_writes = 'Y' WHERE dataset_id IN (SELECT target_id FROM lineage_edge WHERE source_type = 'PROCESS' AND target_type = 'DATASET' AND edge_role = 'PRODUCES' AND ended_at IS NULL AND source_id IN (SELECT process_id FROM process WHERE process_key LIKE 'floe/%' OR process_key LIKE 'dbt/%' OR process_key LIKE 'dagster/%'));

ALTER TABLE change_head ADD COLUMN names_epoch BIGINT DEFAULT 0 NOT NULL;

CREATE TABLE drift_claim (
    claim_id INTEGER NOT NULL, 
    kind VARCHAR(20) NOT NULL, 
    dataset_id INTEGER NOT NULL, 
    subject_id INTEGER NOT NULL, 
    status VARCHAR(20) NOT NULL, 
    first_seen DATETIME NOT NULL, 
    last_seen DATETIME NOT NULL, 
    detail_json TEXT, 
    decided_by VARCHAR(200), 
    decided_at DATETIME, 
    decision_comment TEXT, 
    CONSTRAINT pk_drift_claim PRIMARY KEY (claim_id), 
    CONSTRAINT unq_drift_claim UNIQUE (kind, dataset_id, subject_id)
);

CREATE INDEX idx_drift_claim_status ON drift_claim (status, claim_id);

CREATE INDEX idx_drift_claim_subject ON drift_claim (subject_id);

CREATE TABLE dataset_join (
    join_id INTEGER NOT NULL, 
    kept_id INTEGER NOT NULL, 
    gone_id INTEGER NOT NULL, 
    gone_name VARCHAR(600) NOT NULL, 
    joined_at DATETIME NOT NULL, 
    joined_by VARCHAR(200) NOT NULL, 
    moved_json TEXT NOT NULL, 
    split_id INTEGER, 
    split_at DATETIME, 
    split_by VARCHAR(200), 
    CONSTRAINT pk_dataset_join PRIMARY KEY (join_id)
);

CREATE INDEX idx_dataset_join_kept ON dataset_join (kept_id);

CREATE INDEX idx_dataset_join_name ON dataset_join (gone_name);

CREATE INDEX idx_dataset_join_split ON dataset_join (split_id);

UPDATE floe_revision SET version_num='0005' WHERE floe_revision.version_num = '0004';


