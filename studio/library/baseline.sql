-- The consents to the use of voices. owner: blank until a key adopts the consent.
create table consents (
    n integer primary key,
    id text not null,
    name text not null,
    language text not null,
    statement text,
    recording text,
    media_type text,
    size integer,
    created real not null,
    owner text not null default ''
);

create unique index idx_consents_id on consents (id);

-- A deleted voice that can still be restored keeps its row but not its name. sharing: the right of all others.
create table voices (
    id text primary key,
    slug text not null,
    name text not null,
    folded text not null,
    description text,
    tags text,
    language text,
    bundled integer,
    licence text,
    consent_id text references consents(id),
    defaults text,
    haystack text,
    created real not null,
    changed real,
    revision integer not null,
    version integer not null,
    deleted real,
    gender text not null default '',
    accent text not null default '',
    colour text not null default '',
    owner text not null default '',
    sharing text not null default 'private'
);

create unique index voices_by_name on voices (folded) where deleted is null;

create unique index voices_by_slug on voices (slug) where deleted is null;

create index voices_deleted on voices (deleted) where deleted is not null;

-- A revision, once written, never changes.
create table revisions (
    voice_id text references voices(id),
    number integer,
    created real,
    primary key (voice_id, number)
);

-- All samples of each revision.
create table samples (
    voice_id text references voices(id),
    revision integer,
    position integer,
    id text not null,
    clip text not null,
    media_type text,
    size integer,
    clip_seconds real,
    text text not null,
    speaker integer,
    start real,
    "end" real,
    gain_db real,
    channel integer,
    cut text not null,
    seconds real not null,
    score integer,
    quality text,
    primary key (voice_id, revision, position)
);

create index idx_samples_clip on samples (clip);

create index idx_samples_cut on samples (cut);

-- Codes of a cut (clip, span, gain, channel) by codec: int16 little-endian, codebook by codebook.
create table codes (
    cut text,
    codec text,
    codebooks integer not null,
    frames integer not null,
    codes blob not null,
    created real,
    primary key (cut, codec)
);

-- Takes of the history, and with a part_id those of projects' parts, which no index of the history has. Its reference
-- to parts is only in libraries of earlier versions: without the long form there is no such table.
create table takes (
    n integer primary key,
    id text not null,
    created real not null,
    text text not null,
    voice_id text,
    voice text not null,
    seed integer not null,
    parameters text,
    state text not null,
    finish_reason text,
    error text,
    timings text,
    frames integer,
    seconds real,
    audio text,
    media_type text,
    size integer,
    caller text not null default '',
    starred integer not null default 0,
    deleted real,
    sample_rate integer not null default 0,
    part_id text,
    recipe text,
    work_s real
);

create unique index idx_takes_id on takes (id);

create index idx_takes_audio on takes (audio);

-- The index of trigrams finds any three characters in a row, in every script.
create virtual table takes_text using fts5 (text, content='takes', content_rowid='n', tokenize='trigram');

-- The audit trail: each entry has a hash over itself and the previous one.
create table audit (
    n integer primary key,
    at real not null,
    event text not null,
    subject text not null,
    details text not null,
    hash text not null
);

create trigger audit_no_update before update on audit begin
    select raise(abort, 'audit only grows');
end;

create trigger audit_no_delete before delete on audit begin
    select raise(abort, 'audit only grows');
end;

create index takes_deleted on takes (deleted) where deleted is not null;

-- Names by which a take's voices can be searched: id, slug, slug@revision and id@revision, of a dialogue's cast too.
create table take_voices (
    name text,
    take integer,
    primary key (name, take)
) without rowid;

create index take_voices_by_take on take_voices (take);

create trigger take_voices_removed after delete on takes begin
    delete from take_voices where take = old.n;
end;

-- Codes of takes with audio; parts: each part's seed, frames, whether it is whole, text and end.
-- int16 little-endian, part by part, codebook by codebook.
create table take_codes (
    take integer primary key,
    made_by text not null,
    codebooks integer not null,
    parts text not null,
    codes blob not null
);

create trigger take_codes_removed after delete on takes begin
    delete from take_codes where take = old.n;
end;

-- The times of a take's words, after the first request: a JSON list of [word, start, end], in seconds.
create table take_times (
    take integer primary key,
    words text not null
);

create trigger take_times_removed after delete on takes begin
    delete from take_times where take = old.n;
end;

-- Pronunciations, for everyone, for a voice or for a project. key: a blank first marks phrases whose case counts.
create table pronunciations (
    id text primary key,
    scope text not null,
    subject text not null,
    key text not null,
    phrase text not null,
    said text not null,
    match_case integer not null,
    created real not null
);

create unique index idx_pronunciations_scope_subject_key on pronunciations (scope, subject, key);

create trigger pronunciations_of_voices after delete on voices begin
    delete from pronunciations where scope = 'voice' and subject = old.id;
end;

-- Links with which anyone may play a take until they expire, in Unix time.
create table shares (
    token text primary key,
    take integer not null,
    created real not null,
    expires real not null
);

create index idx_shares_take on shares (take);

create trigger shares_removed after delete on takes begin
    delete from shares where take = old.n;
end;

create index takes_of_parts on takes (part_id) where part_id is not null;

create index takes_listed on takes (n) where part_id is null;

-- The retention counts these rows and adds up their sizes after every take.
create index takes_kept on takes (n, size) where starred = 0 and deleted is null and part_id is null;

create index takes_starred on takes (n) where starred = 1 and deleted is null and part_id is null;

create trigger takes_added after insert on takes when new.part_id is null begin
    insert into takes_text (rowid, text) values (new.n, new.text);
end;

create trigger takes_removed after delete on takes when old.part_id is null begin
    insert into takes_text (takes_text, rowid, text) values ('delete', old.n, old.text);
end;

create trigger take_voices_added after insert on takes when new.part_id is null begin
    insert or ignore into take_voices select name, new.n from (select new.voice_id as name union all select
    new.voice as address union all select json_extract(new.parameters, '$.voice') union all select value from
    json_each(new.parameters, '$.cast') union all select rtrim(rtrim(address, '0123456789'), '@') as slug from
    (select new.voice as address union all select json_extract(new.parameters, '$.voice') union all select value
    from json_each(new.parameters, '$.cast')) union all select id from voices where deleted is null and slug in
    (select rtrim(rtrim(address, '0123456789'), '@') as slug from (select new.voice as address union all select
    json_extract(new.parameters, '$.voice') union all select value from json_each(new.parameters, '$.cast'))))
    where name is not null;
end;

create trigger take_revisions_added after insert on takes when new.part_id is null begin
    insert or ignore into take_voices select id || substr(address, length(rtrim(rtrim(address, '0123456789'),
    '@')) + 1), new.n from (select new.voice as address union all select json_extract(new.parameters, '$.voice')
    union all select value from json_each(new.parameters, '$.cast')) join voices on id = new.voice_id or
    (new.voice_id is null and deleted is null and slug = rtrim(rtrim(address, '0123456789'), '@'));
end;

-- Favourite voices by owner.
create table favourites (
    voice_id text,
    owner text,
    primary key (voice_id, owner)
) without rowid;

create trigger favourites_removed after delete on voices begin
    delete from favourites where voice_id = old.id;
end;

-- Which voices were bundled is looked up at each start, and the trail grows with every edit.
create index audit_by_event on audit (event, n);

create index audit_by_subject on audit (subject, n)
