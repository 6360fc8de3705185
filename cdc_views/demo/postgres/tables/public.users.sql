-- key: id
SELECT id, name, email, bio, country, verified, karma, born, joined_at, settings::text AS settings
FROM public.users;
