alter table parts rename to all_parts;

alter table all_parts rename column position to place;

alter table all_parts add column deleted real;

alter table all_parts add column merged_into text;

alter table all_parts add column "merge" text;

alter table all_parts add column chapter_of text;

update all_parts set place = place * 1024;

drop index idx_parts_project_id_position;

drop index parts_queued;

drop index parts_sums;

drop index parts_timed;

create index parts_places on all_parts (project_id, place);

-- With the column deleted, so that parts are counted without reading their rows.
create index parts_in_order on all_parts (project_id, place, deleted) where deleted is null;

create index parts_deleted on all_parts (deleted) where deleted is not null;

create index parts_queued on all_parts (project_id, place) where state = 'queued' and deleted is null;

create index parts_timed on all_parts (project_id) where start is not null and deleted is null;

create index parts_of_chapters on all_parts (project_id, place) where chapter != '';

create index parts_borrowing on all_parts (chapter_of) where chapter_of is not null;

-- The parts that continue a part's paragraph.
create index parts_continuing on all_parts (continues) where continues != '';

-- Sums of a project over its parts, in one index: a poll must not read the texts and takes of all parts.
create index parts_sums on all_parts (project_id, state, characters, heard, work_s, worked, deleted)
    where deleted is null
