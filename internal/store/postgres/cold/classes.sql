-- name: unused_classes
select class_id from class c where not exists (select from exec e where e.class_id = c.class_id) order by class_id;
