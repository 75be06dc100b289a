-- name: unused_classes
select class_id from {schema}.class c where not exists (select from {schema}.exec e where e.class_id = c.class_id) order by class_id;
