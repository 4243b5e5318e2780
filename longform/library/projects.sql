-- Long texts to be spoken. deleted: Unix time; for a while it can be restored. skipped: a JSON list of sentences.
create table projects (
    n integer primary key,
    id text not null,
    owner text not null,
    title text not null,
    kind text,
    settings text not null,
    paused integer not null,
    served real not null,
    created real not null,
    changed real not null,
    deleted real,
    skipped text not null default '[]',
    sharing text not null default 'private'
);

create unique index idx_projects_id on projects (id);

create index idx_projects_owner_n on projects (owner, n);

-- lease, leased_until: the token of a claim, and its expiry unless renewed. heard, work_s: seconds of the chosen
-- take, and of all work on the part so far; worked: characters that this work was for. continues: the part whose
-- paragraph this one continues; blank: it begins a paragraph; null: unknown.
create table parts (
    n integer primary key,
    id text not null,
    project_id text not null references projects(id),
    position integer not null,
    chapter text not null,
    text text not null,
    voice text,
    pause real,
    start real,
    "end" real,
    state text not null,
    attempts integer not null,
    error text,
    chosen text,
    lease text,
    leased_until real,
    characters integer generated always as (length(text)) virtual,
    heard real not null default 0.0,
    work_s real not null default 0.0,
    worked integer not null default 0,
    character text,
    confidence real,
    reason text,
    speed real,
    temperature real,
    top_p real,
    top_k integer,
    confirmed integer not null default 0,
    scene integer not null default 0,
    continues text
);

create unique index idx_parts_id on parts (id);

create index idx_parts_project_id_position on parts (project_id, position);

create index parts_queued on parts (project_id, position) where state = 'queued';

-- Cover pictures of projects.
create table covers (
    project_id text primary key references projects(id),
    digest text not null,
    media_type text not null,
    image blob not null
);

create trigger covers_removed before delete on projects begin
    delete from covers where project_id = old.id;
end;

create trigger pronunciations_of_projects after delete on projects begin
    delete from pronunciations where scope = 'project' and subject = old.id;
end;

create index projects_deleted on projects (deleted) where deleted is not null;

create index parts_spoken on parts (leased_until) where state = 'speaking';

-- Sums of a project over its parts, in one index: a poll must not read the texts and takes of all parts.
create index parts_sums on parts (project_id, state, characters, heard, work_s, worked);

create index parts_timed on parts (project_id) where start is not null;

-- Texts that were replaced in a project: parts is a JSON list of [part, text before, text after], count its length.
create table replaced_texts (
    id text primary key not null,
    project_id text not null,
    parts text not null,
    count integer not null,
    deleted real not null
);

create index idx_replaced_texts_project_id on replaced_texts (project_id);

create index idx_replaced_texts_deleted on replaced_texts (deleted);

create trigger replaced_texts_of_projects after delete on projects begin
    delete from replaced_texts where project_id = old.id;
end;

create trigger parts_heard after update of chosen on parts begin
    update parts set heard = coalesce((select seconds from takes where id = new.chosen), 0.0) where n = new.n;
end;

-- The cast. aliases: a JSON list. Of a deleted character, lines is a JSON list of the parts that it had, and
-- successor the character that has them now.
create table characters (
    n integer primary key,
    id text not null,
    project_id text not null,
    name text not null,
    aliases text not null,
    gender text not null,
    voice text,
    is_narrator integer not null,
    deleted real,
    lines text,
    successor text
);

create unique index idx_characters_id on characters (id);

create index idx_characters_project_id on characters (project_id);

create index characters_deleted on characters (deleted) where deleted is not null;

create trigger characters_of_projects after delete on projects begin
    delete from characters where project_id = old.id;
end;

create index parts_of_characters on parts (character) where character is not null;

-- The transcripts of checked takes of projects' parts.
create table checked_takes (
    take integer primary key,
    version integer not null,
    recogniser text not null,
    words integer not null,
    wrong integer not null,
    speech_s real not null,
    level real,
    pace real,
    checked real not null
);

-- Doubtful spots of checked takes; the kind note is written by listeners. first, last: characters of the take's
-- text.
create table findings (
    n integer primary key,
    id text not null,
    take integer not null,
    kind text not null,
    weight integer not null,
    start real not null,
    "end" real not null,
    first integer not null,
    last integer not null,
    heard text not null,
    accepted integer not null default 0
);

create unique index idx_findings_id on findings (id);

create index idx_findings_take on findings (take);

create trigger checked_takes_removed after delete on takes begin
    delete from checked_takes where take = old.n;
end;

create trigger findings_removed after delete on takes begin
    delete from findings where take = old.n;
end
