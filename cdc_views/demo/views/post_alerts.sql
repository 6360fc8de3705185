-- Which posts each saved search matches: cdc-views changes post_alerts --since now --follow
CREATE MATERIALIZED VIEW post_alerts
WITH (kind = 'saved_searches', index = 'post_search', document = 'post_id', query = 'query')
AS
SELECT id AS search_id, user_id, query FROM searches;
