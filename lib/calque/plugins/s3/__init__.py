"""Object stores that speak S3 as storage."""
